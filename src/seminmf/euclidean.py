"""EuclideanSNMF: semi-NMF by least squares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ._algorithms import euclidean
from ._algorithms.euclidean import LeastSquares, SignedFactors
from ._algorithms.explained import Explained
from ._algorithms.loop import Result, Stopping
from ._algorithms.start import Filled, from_kmeans, from_svd
from ._data.source import Data, all_blocks
from ._estimators import validation as check
from ._estimators.base import BaseSNMF
from ._estimators.checkpoint import unlocks_checkpoint
from ._estimators.files import COMMON_SCALARS, TRACE, ArrayField, FittedFields
from ._estimators.runs import Runner
from ._estimators.transaction import fits
from ._kernels.euclidean.least_squares import GAP_WEIGHT
from ._kernels.euclidean.nnls import solve_rows
from ._numerics.compiled import announced
from ._numerics.scaling import power_of_two, powers_of_two

# Components are brought back to size 1 if they are larger than this, or smaller than its inverse.
_LARGEST = 1e15
# A random start's activations, and what K-means' indicators get on top: no rule leaves a 0 that it
# multiplies.
_LEAST_START = 1e-4
_SPREAD = 0.2
# Differences of objectives below this share of that of all zeros are none.
_ROUNDING = 1e-13
# Of the cells, this share at least counts as not fitted, where noise is drawn.
_LEAST_FREE = 0.1


class EuclideanSNMF(BaseSNMF):
    """Semi-nonnegative matrix factorization by least squares, the classic one.

    It minimises ½ Σ (x − activations · components)² over the observed cells, with activations ≥ 0
    and components of any sign. In gaps, the square of what each component puts there counts with a
    weight of 1e-4: it decides where few observed cells do not.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, K.
    solver : {"hals", "multiplicative"}, default="hals"
        "hals" moves one activation after the other to its best value, with extrapolation: the
        fastest. "multiplicative" is the rule of Ding, Li and Jordan. Both find the components by
        least squares.
    scale_features : bool, default=False
        Whether each feature is divided by its root mean square before the fit, so that all count
        alike. What comes out is in the unit of X; but what sums over features, `activations_`,
        `amounts_`, `r2_`, `objective_` and `score`, is of scaled ones.
    init : {"random", "kmeans", "svd"}, default="random"
        Start values, where `fit` is not given any.
    n_init : int, default=1
        Number of starts, of which the best is kept.
    max_iter : int, default=3000
        Most iterations of a run.
    tol : float, default=1e-4
        A run has converged when the objective gained less than `tol` times its size over the last
        20 iterations. 0 never stops before `max_iter`.
    random_state : int, RandomState or None, default=None
        Source of the start values. The same seed gives the same bits, whatever `n_jobs`.
    n_jobs : int or None, default=None
        Threads. None and -1 are all cores; small problems use one in any case.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Signed components. Their sizes and those of the activations are where the iterations led:
        only the products count.
    activations_ : ndarray of shape (n_samples, n_components)
        Activations of the training data.
    amounts_ : ndarray of shape (n_samples, n_components)
        What each component puts into each sample: activation × Σ |component|, in the unit of X.
    r2_ : float
        R² of the observed cells, 1 − Σ (x − activations · components)² / Σ x²; `r2` has more on it.
    r2_drop_ : ndarray of shape (n_components,)
        What R² falls by when a component is taken out and the others stay as they are.
    objective_ : float
        −½ Σ (x − activations · components)² at the end, less the squares in gaps.
    objectives_ : ndarray of shape (n_iter_ + 1,)
        Its values from the start to the end.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether that run met the rule of `tol`.
    stop_reason_ : {"tolerance", "max_iter", "interrupted"}
        Why that run ended: by the rule of `tol`, for want of iterations, or by Ctrl-C.
    component_stability_ : ndarray of shape (n_components,)
        Mean cosine of each component with its match in the other starts; NaN for a single start.
    stability_ : float
        Its mean.
    n_same_starts_ : int
        Number of starts that found the components of the best, with a cosine of 0.95 or more.
    feature_scale_ : ndarray of shape (n_features,)
        What features were divided by for the fit; 1 without `scale_features`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has feature names.

    See Also
    --------
    SkellamSNMF : A likelihood in the place of squares.

    References
    ----------
    C. Ding, T. Li and M. I. Jordan, "Convex and semi-nonnegative matrix factorizations", 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from seminmf import EuclideanSNMF
    >>> X = np.array([[3, -1, 2], [6, -2, 4], [-1, 4, 1], [-2, np.nan, 2], [2, 3, 3]])
    >>> model = EuclideanSNMF(n_components=2, random_state=0).fit(X)
    >>> model.impute(X).round()
    array([[ 3., -1.,  2.],
           [ 6., -2.,  4.],
           [-1.,  4.,  1.],
           [-2.,  8.,  2.],
           [ 2.,  3.,  3.]])
    """

    _private_state = (*BaseSNMF._private_state, "_components_of_fit", "_gap_weight")
    _starts = ("random", "kmeans", "svd")
    _default_for_unobserved = "zeros"
    _fitted_fields = FittedFields(
        arrays={
            "components_": ArrayField("KI", "any", attribute="_components_of_fit"),
            "activations_": ArrayField("JK"),
            "objectives_": TRACE,
        },
        scalars={**COMMON_SCALARS, "objective_": float, "_gap_weight": float},
        # Files that were written when squares in gaps did not count.
        defaults={"_gap_weight": 0.0},
    )

    def __init__(
        self,
        n_components: int = 2,
        *,
        solver: str = "hals",
        scale_features: bool = False,
        init: str = "random",
        n_init: int = 1,
        max_iter: int = 3000,
        tol: float = 1e-4,
        random_state: int | RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.scale_features = scale_features
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fits
    @unlocks_checkpoint
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        components: ArrayLike | None = None,
        activations: ArrayLike | None = None,
        frozen: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> EuclideanSNMF:
        """Fit to X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data of any sign, NaN where not observed.
        y : None
            Not used.
        components : array-like of shape (n_components, n_features)
            Start values. Components that are NaN, or all if none are given, start as the least
            squares for the activations.
        activations : array-like of shape (n_samples, n_components)
            Start values.
        frozen : array-like of bool of shape (n_components,), or of indices
            Components that stay as they are given.
        sample_weight : array-like of shape (n_samples,)
            A weight of 2 counts as the sample twice.
        checkpoint : str or path-like, default=None
            File in which the fit notes how far it is. If the file is there, the fit goes on from
            it, to exactly the result that it would have had without the stop. A file of other data
            or other parameters is refused. It stays after the fit.
        checkpoint_every : float, default=60.0
            Seconds from one writing to the next.

        Returns
        -------
        self
        """
        self._check_parameters()
        data = self._check_data(X, fitted=False)
        weights = check.check_weight(sample_weight, data, has_prior=False)
        shape = (self.n_components, data.source.shape[1])
        if components is not None:
            components = self._of_fit(check.check_components(components, shape))
        mask = check.check_frozen(frozen, self.n_components, components, "components")
        if activations is not None:
            sizes = (data.source.shape[0], self.n_components)
            activations = check.check_start("activations", activations, sizes)
        check.record_features(self, X)
        self._keep_parameters()
        self._warn_unobserved(data.summary)
        self._unit = power_of_two(data.summary.largest)
        largest = power_of_two(float(weights.max()))
        given = {"components": components, "activations": activations}
        runner, random = self._runner(
            checkpoint, checkpoint_every, data.source, **given, frozen=mask, weights=weights
        )
        data = data._replace(weights=weights / largest)
        with self._problem(data, mask) as problem:
            run = partial(self._run, problem, runner, components, activations, random)
            best = self._best_run(run, lambda point: point.components)
            self._publish(problem, best.result, largest)
        self._publish_starts(best.stability, best.n_same)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_choice("solver", self.solver, tuple(euclidean.SOLVERS))

    @contextmanager
    def _problem(self, data: Data, frozen: NDArray) -> Iterator[LeastSquares]:
        """What the algorithm sees, with its threads, for a while."""
        with announced(), data.source.executor(self.n_jobs) as executor:
            yield LeastSquares(data, self._unit, frozen, self.solver, executor)

    def _run(
        self,
        problem: LeastSquares,
        runner: Runner,
        components: NDArray | None,
        activations: NDArray | None,
        random: RandomState,
    ) -> Result[SignedFactors]:
        """One run from one start."""
        if components is None:
            components = np.full((self.n_components, problem.data.shape[1]), np.nan)
        missing = np.isnan(components)
        known = np.where(missing, 0.0, components / self._unit)
        if activations is None:
            scale = powers_of_two(np.abs(known).max(axis=1))
            activations = self._start(problem, random)
        else:
            # Components that follow from activations are as small as these are large.
            sizes = np.where(missing.any(axis=1), 1 / powers_of_two(activations.max(axis=0)), 0.0)
            scale = powers_of_two(np.maximum(np.abs(known).max(axis=1), sizes))
            activations = activations * scale
        point = SignedFactors(activations, known / scale[:, None])
        rest = problem._replace(frozen=~np.any(missing, axis=1))
        point = euclidean.with_best_components(rest, point)
        begin = [point].pop
        del point
        stopping = Stopping(self.max_iter, self.tol)
        result = runner.run(euclidean, problem, begin, self.solver, stopping)
        result = self._finish(problem, runner, result)
        activations, components = result.state
        back = _into_range(components)
        scale = np.where(back == 1, scale, back)
        return result._replace(
            state=SignedFactors(activations / scale, components * scale[:, None])
        )

    def _start(self, problem: LeastSquares, random: RandomState) -> NDArray:
        """Activations (J, K) to start from."""
        source, summary = problem.data.source, problem.data.summary
        n_samples, n_components = problem.data.shape[0], self.n_components
        if self.init == "random":
            activations = random.uniform(size=(n_samples, n_components)) + _LEAST_START
        else:
            filled = Filled.from_summary(source, summary, problem.unit)
            build = from_kmeans if self.init == "kmeans" else from_svd
            _, activate = build(filled, n_components, random)
            activations = filled.map(activate)
            size = activations.mean()
            activations = activations / (size if size > 0 else 1.0) + _SPREAD
        activations[summary.row_count == 0] = 0.0
        return activations

    def _finish(
        self, problem: LeastSquares, runner: Runner, result: Result[SignedFactors]
    ) -> Result[SignedFactors]:
        """Solve for the activations, so that they are those that `transform` would return.

        Where that gains more than the tolerance, the iterations had but come to a halt, and go on.
        """
        nothing = SignedFactors(*(np.zeros_like(part) for part in result.state))
        rounding = _ROUNDING * abs(euclidean.objective(problem, nothing))
        while result.converged:
            point = self._solved(problem, result.state.components)
            objective = euclidean.objective(problem, point)
            gain = objective - result.objectives[-1]
            left = self.max_iter - result.n_iter - 1
            if gain <= max(self.tol * abs(objective), rounding):
                return result.ending_with(point, objective, rounding)
            if left < 1:
                return result.ending_with(point, objective)._replace(reason="max_iter")
            begin = [point].pop
            del point
            stopping = Stopping(left, self.tol)
            further = runner.run(euclidean, problem, begin, self.solver, stopping)
            result = result.followed_by(further)
        return result

    def _solved(self, problem: LeastSquares, components: NDArray) -> SignedFactors:
        """The best activations for the components, as the data's type can hold these."""
        components = components * _into_range(components)[:, None]
        rounded = components.astype(problem.data.source.dtype).astype(np.float64)
        solution = solve_rows(problem.data.source, problem.unit, rounded, problem.executor)
        return SignedFactors(solution, rounded)

    def _publish(self, problem: LeastSquares, result: Result[SignedFactors], weight: float) -> None:
        """Set the fitted attributes; objectives are in units of X and of the weights."""
        dtype = problem.data.source.dtype
        self._gap_weight = GAP_WEIGHT
        self._components_of_fit = (result.state.components * self._unit).astype(dtype)
        self.activations_ = result.state.activations.astype(dtype)
        self._publish_explained(problem, self.activations_)
        with np.errstate(over="ignore"):
            self.objectives_ = np.array(result.objectives) * self._unit * self._unit * weight
        self.objective_ = float(self.objectives_[-1])
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.stop_reason_ = result.reason

    def _solve(self, data: Data) -> NDArray:
        components = self._components_of_fit / np.float64(self._unit)
        scale = powers_of_two(np.abs(components).max(axis=1))
        source = data.source
        with announced(), source.executor(self.n_jobs) as executor:
            solution = solve_rows(
                source, self._unit, components / scale[:, None], executor, self._gap_weight
            )
        return (solution / scale).astype(data.source.dtype)

    def _explained(self, data: Data) -> Explained:
        with self._problem(data, np.zeros(self._n_features_out, dtype=bool)) as problem:
            return self._explain(problem, self._solve(data))

    def _drawn_like(self, data: Data, random: RandomState) -> NDArray:
        """Data (J, I) that might have been: noise is normal, of the size of the residuals."""
        fitted = self.activations_.astype(np.float64) @ self._components_of_fit
        residuals = data.source.rows(0, data.shape[0]) - fitted
        n_fitted = self._components_of_fit.size + self.activations_.size
        n_cells = data.summary.n_observed
        free = max(1 - n_fitted / n_cells, _LEAST_FREE)
        noise = np.sqrt(np.nansum(residuals**2, axis=0) / np.maximum(data.summary.column_count, 1))
        return fitted + noise / np.sqrt(free) * random.normal(size=fitted.shape)

    def _refitting(self) -> tuple[EuclideanSNMF, dict[str, NDArray]]:
        """An estimator that fits the same to other data, and the start values for it."""
        estimator = clone(self).set_params(
            n_components=self._n_features_out, n_init=1, n_jobs=1, verbose=0, scale_features=False
        )
        start = {"components": self._components_of_fit, "activations": self.activations_}
        return estimator, start

    def score(self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None) -> float:
        """Minus the mean square error of the observed cells, given their samples' activations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,)
            A weight of 2 counts as the sample twice.

        Returns
        -------
        float
        """
        self._check_transformable()
        data, weights = self._check_scored(X, sample_weight)
        activations = self._solve(data).astype(np.float64)
        unit = power_of_two(data.summary.largest)
        total = 0.0
        for block in all_blocks(data.source):
            errors = block.X - activations[block.samples] @ self._components_of_fit
            errors /= unit
            errors *= errors
            total += float(np.sum(weights[block.samples] * np.nansum(errors, axis=1)))
        with np.errstate(over="ignore"):
            return float(-np.float64(total / (weights @ data.summary.row_count)) * unit * unit)


def _into_range(components: NDArray) -> NDArray:
    """Factors (K,) for components that have drifted out of the range of their type, else 1.

    Only the products with activations are decided.
    """
    sizes = np.abs(components).max(axis=1)
    drifted = (sizes > _LARGEST) | ((sizes > 0) & (sizes < 1 / _LARGEST))
    return np.where(drifted, 1 / powers_of_two(sizes), 1.0)
