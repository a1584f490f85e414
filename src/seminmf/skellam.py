"""SkellamSNMF: semi-NMF by maximum a posteriori."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_random_state

from ._algorithms import em, minibatch
from ._algorithms.activations import refine_maximum, solve_maximum, solve_roughly
from ._algorithms.choice import choose_algorithm
from ._algorithms.dispersion import dispersion, dispersion_at
from ._algorithms.loop import Result, Stopping
from ._algorithms.problem import Problem
from ._algorithms.start import start
from ._data.executor import per_sample
from ._estimators import validation as check
from ._estimators.checkpoint import unlocks_checkpoint
from ._estimators.files import COMMON_SCALARS, TRACE, ArrayField, FittedFields
from ._estimators.noise import Findings, Given
from ._estimators.noisy import (
    NOISE_ARRAYS,
    NOISE_SCALARS,
    NoisySkellamSNMF,
    before_dispersion,
)
from ._estimators.runs import Runner
from ._estimators.transaction import fits
from ._model.likelihoods import Dispersed
from ._model.model import Priors

SOLVERS = ("newton", "em")


class SkellamSNMF(NoisySkellamSNMF):
    """Semi-nonnegative matrix factorization, X ≈ activations · components, point estimates.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, K.
    likelihood : {"real", "integer"}, default="real"
        "real" for any numbers, "integer" for counts and differences of counts (M = 1 of the paper,
        a dispersion of 1).
    dispersion : "auto" or float, default="auto"
        φ = 1 / M, in the unit of X: a component adds φ Σ|W| λ to the variance of a cell. "auto" is
        small against the noise. 0.0 is the paper's M = ∞.
    noise : {"auto", "feature", "same", None}, default="auto"
        Noise that no component explains, as a component of its own, equal in both signs: a level
        for each feature, the same for all, or none. "auto" is "feature", and None for integers, for
        a dispersion of 0.0 and where `fit` is given `cell_noise`.
    positive_components : bool, default=False
        Whether components are at least 0. Noise may then make X negative, the components do not.
    fit_intercept : bool, default=False
        Whether a number for each feature is added to activations · components. It needs noise.
    scale_features : bool, default=False
        Whether each feature is divided by its size before the fit, so that all count alike: by its
        root mean square, or with `fit_intercept` by its standard deviation. What comes out is in
        the unit of X; but sums over features, which are `activations_`, `amounts_` and `r2_`, are
        of scaled ones, and so are `dispersion` and the priors. With noise by feature components
        and fills hardly change; clusters and amounts do.
    activation_shape_prior : float or array-like, default=1.0
        Shape of the activations' gamma prior: a number, or broadcasting to
        (n_samples, n_components).
    activation_rate_prior : "auto", float or array-like, default="auto"
        Its rate, for activations in units of the dispersion where that is above 0. "auto" is in
        proportion to a component's length in units of the noise, by a factor that is found with the
        noise; without noise it is 1e-3.
    atom_shape_prior : float or array-like, default=1.0
        Shape of the atoms' Dirichlet prior: a number, or broadcasting to
        (2, n_components, n_features).
    solver : {"newton", "em"}, default="newton"
        "newton" alternates Newton steps on activations and atoms, with extrapolation: the fastest.
        Where a prior's shape is below 1 it falls back to "em", the paper's algorithm.
    acceleration : {"squarem", "parabolic", None}, default="squarem"
        How EM is extrapolated; "newton" has its own way. An iteration is then a cycle of three or
        four passes over the data, of which two are the paper's iterations; the objective never
        falls. With None an iteration is the paper's.
    init : {"auto", "random", "kmeans", "svd", "prior"}, default="auto"
        Start values, where `fit` is not given any. "auto" is of several kinds where noise is sought
        (samples, means of samples that point the same way, random numbers), and else "random".
    n_init : int or "auto", default="auto"
        Number of starts, of which the best is kept. "auto" is 10 where noise is sought, which costs
        little, and else 1.
    max_iter : int, default=3000
        Most iterations of a run.
    tol : float, default=1e-4
        A run has converged when the objective gained less than `tol` times its size over the last
        20 iterations. One iteration alone would not tell, EM is slow. 0 never stops before
        `max_iter`.
    check_integer : bool, default=True
        Whether likelihood "integer" refuses data that are no integers.
    random_state : int, RandomState or None, default=None
        Source of the start values. The same seed gives the same bits, whatever `n_jobs`.
    n_jobs : int or None, default=None
        Threads. None and -1 are all cores; small problems use one in any case.
    verbose : int, default=0
        1 shows a progress bar.
    sparse_zeros : {"missing", "observed"}, default="missing"
        What cells are that a sparse X does not store: gaps, or data that are 0.
    batch_size : int or None, default=None
        Samples of a batch. `fit` then learns from one batch after the other, and an iteration is an
        epoch over all of them. None looks at all samples at once.
    total_samples : int or None, default=None
        For `partial_fit`: how many samples there are in all, against which the atoms' prior counts.
        None counts those that have been seen.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Signed components.
    atoms_ : ndarray of shape (2, n_components, n_features)
        Their positive and negative parts, which sum to 1 for each component.
    activations_ : ndarray of shape (n_samples, n_components)
        Activations of the training data, in the unit of X.
    amounts_ : ndarray of shape (n_samples, n_components)
        What each component puts into each sample: activation × Σ |component|, in the unit of X.
    r2_ : float
        R² of the observed cells, 1 − Σ (x − activations · components)² / Σ x²; `r2` has more on it.
    r2_drop_ : ndarray of shape (n_components,)
        What R² falls by when a component is taken out and the others stay as they are.
    objective_ : float
        Log-posterior at the end, constants dropped.
    objectives_ : ndarray of shape (n_iter_ + 1,)
        Its values from the start to the end.
    n_iter_ : int
        Iterations of the best run, and batches since.
    converged_ : bool
        Whether that run met the rule of `tol`.
    stop_reason_ : {"tolerance", "max_iter", "interrupted"}
        Why that run ended: by the rule of `tol`, for want of iterations, or by Ctrl-C.
    solver_ : {"newton", "em"}
        The solver that was used: `solver="newton"` falls back to EM where a prior's shape is below
        1. "unknown" for files of before.
    dispersion_ : float
        The dispersion, in the unit of X; 1 for integers. With `dispersion=0.0` it is that of the
        residuals, 2ΣD / degrees of freedom, in which `score` measures.
    noise_ : ndarray of shape (n_features,)
        Standard deviation of each feature's noise, in the unit of X; 0 without a component for it.
    intercept_ : ndarray of shape (n_features,)
        What is added to activations · components; 0 without `fit_intercept`.
    activation_rate_prior_ : ndarray of shape (n_components,)
        The rate that was used; (n_samples, n_components) if each sample was given its own.
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

    References
    ----------
    B. Fuentes and G. Richard, "Probabilistic semi-nonnegative matrix factorization: a Skellam-based
    framework", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from seminmf import SkellamSNMF
    >>> rng = np.random.RandomState(0)
    >>> amounts = rng.gamma(0.5, size=(200, 2))
    >>> patterns = np.array([[0.5, -0.3, 0.2, 0.0], [0.1, 0.4, 0.0, -0.5]])
    >>> X = amounts @ patterns + 0.02 * rng.normal(size=(200, 4))
    >>> X[::7, 1] = np.nan
    >>> model = SkellamSNMF(n_components=2, random_state=0).fit(X)
    >>> order = model.components_[:, 0].argsort()[::-1]
    >>> model.components_[order].round(1) + 0.0
    array([[ 0.5, -0.3,  0.2,  0. ],
           [ 0.1,  0.4,  0. , -0.5]])
    >>> bool(np.corrcoef(model.amounts_[:, order[0]], amounts[:, 0])[0, 1] > 0.99)
    True
    """

    _needs_rate = False
    _dispersion_share = 0.01
    _fitted_fields = FittedFields(
        arrays={
            "atoms_": ArrayField("2KI"),
            "activations_": ArrayField("JK"),
            "objectives_": TRACE,
            **NOISE_ARRAYS,
        },
        scalars={
            **COMMON_SCALARS,
            **NOISE_SCALARS,
            "dispersion_": float,
            "objective_": float,
            "solver_": str,
        },
        defaults={**dict.fromkeys(NOISE_SCALARS, float("nan")), "solver_": "unknown"},
        older_parameters=before_dispersion,
        has_priors=True,
        stream_atoms="atoms_",
    )

    def __init__(
        self,
        n_components: int = 2,
        *,
        likelihood: str = "real",
        dispersion: float | str = "auto",
        noise: str | None = "auto",
        positive_components: bool = False,
        fit_intercept: bool = False,
        scale_features: bool = False,
        activation_shape_prior: ArrayLike = 1.0,
        activation_rate_prior: ArrayLike | str = "auto",
        atom_shape_prior: ArrayLike = 1.0,
        solver: str = "newton",
        acceleration: str | None = "squarem",
        init: str = "auto",
        n_init: int | str = "auto",
        max_iter: int = 3000,
        tol: float = 1e-4,
        check_integer: bool = True,
        random_state: int | RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        sparse_zeros: str = "missing",
        batch_size: int | None = None,
        total_samples: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.likelihood = likelihood
        self.dispersion = dispersion
        self.noise = noise
        self.positive_components = positive_components
        self.fit_intercept = fit_intercept
        self.scale_features = scale_features
        self.activation_shape_prior = activation_shape_prior
        self.activation_rate_prior = activation_rate_prior
        self.atom_shape_prior = atom_shape_prior
        self.solver = solver
        self.acceleration = acceleration
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.check_integer = check_integer
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.sparse_zeros = sparse_zeros
        self.batch_size = batch_size
        self.total_samples = total_samples

    @fits
    @unlocks_checkpoint
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        atoms: ArrayLike | None = None,
        activations: ArrayLike | None = None,
        frozen: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        cell_noise: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> SkellamSNMF:
        """Fit to X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data of any sign, NaN where not observed.
        y : None
            Not used.
        atoms : array-like of shape (2, n_components, n_features) or (n_components, n_features)
            Start values; they are normalised. Signed ones are split into positive and negative
            parts. Components whose atoms are NaN are initialised as `init` says.
        activations : array-like of shape (n_samples, n_components)
            Start values, in the unit of X.
        frozen : array-like of bool of shape (n_components,), or of indices
            Components that keep the atoms given.
        sample_weight : array-like of shape (n_samples,)
            A weight of 2 counts as the sample twice.
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            The known standard deviation of each cell, in the unit of X; infinity makes a gap of it.
            A DataFrame is aligned by its labels. Noise by feature is added if `noise` asks for it.
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
        data = self._check_data(X, fitted=False, cell_noise=cell_noise)
        n_samples, n_features = data.shape
        self._check_noise(data)
        priors = self._check_priors(n_samples, n_features)
        weights = check.check_weight(sample_weight, data)
        if atoms is not None:
            atoms = check.check_atoms(atoms, self.n_components, n_features, self.feature_scale_)
            self._check_signs(atoms)
        mask = check.check_frozen(frozen, self.n_components, atoms)
        if activations is not None:
            activations = check.check_start(
                "activations", activations, (n_samples, self.n_components)
            )
        self._check_batches(data, activations=activations)
        check.record_features(self, X)
        self._keep_parameters()
        self._warn_unobserved(data.summary)
        given = {"atoms": atoms, "activations": activations, "frozen": mask, "weights": weights}
        given["cell_noise"] = data.cell_noise
        runner, random = self._runner(checkpoint, checkpoint_every, data.source, **given)
        data = data._replace(weights=weights)
        found = self._find_noise(data, priors, Given(atoms, activations, mask), runner, random)
        with self._problem_to_fit(data, priors, mask) as problem:
            run = partial(self._run, problem, runner, atoms, activations, found, random)
            n_init = self._n_starts(data) if found is None else 1
            best = self._best_run(run, lambda state: state.atoms[0] - state.atoms[1], n_init)
            if self.batch_size is None:
                self._note_solver(problem)
            self._publish(problem, best.result)
        starts = best if found is None else found
        self._publish_starts(starts.stability, starts.n_same)
        return self

    def _priors_speak(self, priors: Priors) -> bool:
        """Whether the priors say how large activations are, or atoms."""
        flat = priors.activations.is_exponential and priors.atoms.is_flat
        return self.init == "prior" or not flat

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_choice("solver", self.solver, SOLVERS)

    def _run(
        self,
        problem: Problem,
        runner: Runner,
        atoms: NDArray | None,
        activations: NDArray | None,
        found: Findings | None,
        random: RandomState,
    ) -> Result[em.Factors]:
        """One run from one start, or from what the search for noise found."""
        if self.batch_size is not None:
            first = self._start(problem, atoms, activations, found, random).atoms
            return self._run_in_batches(problem, runner, first, random)
        name, algorithm = choose_algorithm(self.solver, self.acceleration, problem)
        begin = partial(self._start, problem, atoms, activations, found, random)
        stopping = Stopping(0 if self._search_interrupted else self.max_iter, self.tol)
        result = runner.run(algorithm, problem, begin, name, stopping)
        if self._search_interrupted:
            return result._replace(reason="interrupted")
        return self._finish(problem, result) if result.converged else result

    def _start(
        self,
        problem: Problem,
        atoms: NDArray | None,
        activations: NDArray | None,
        found: Findings | None,
        random: RandomState,
    ) -> em.Factors:
        """Where a run starts: where noise was found, or as `init` says but for what was given."""
        dtype = problem.dtype
        if found is not None:
            first = self._first_atoms(problem, found, atoms, self._needs_spread(problem))
            return em.above_floor(problem, em.Factors(solve_roughly(problem, first), first))
        state = start(problem, self.init, random)
        if atoms is not None:
            state = state._replace(
                atoms=np.where(np.isnan(atoms), state.atoms, atoms).astype(dtype)
            )
        state = self._with_signs(state)
        if activations is not None:
            given = (activations / self._unit).astype(dtype)
            state = state._replace(activations=problem.executor.scatter(given))
        return em.above_floor(problem, state)

    def _note_solver(self, problem: Problem) -> None:
        """Say which solver can be used for this problem."""
        self.solver_ = choose_algorithm(self.solver, self.acceleration, problem)[0].lower()

    def _needs_spread(self, problem: Problem) -> bool:
        """Whether a start must not have zeros."""
        name, _ = choose_algorithm(self.solver, self.acceleration, problem)
        return name == "EM" or not problem.model.priors.atoms.is_flat

    def _run_in_batches(
        self, problem: Problem, runner: Runner, atoms: NDArray, random: RandomState
    ) -> Result[em.Factors]:
        result = self._run_batches(problem, runner, self._learn, atoms, random)
        atoms, self.solver_ = result.state.atoms, result.state.solver
        state = em.Factors(solve_maximum(problem, atoms).astype(problem.dtype), atoms)
        return Result(state, [*result.objectives[1:], em.evaluate(problem, state)], result.reason)

    def _first_stream(self, problem: Problem) -> minibatch.Stream:
        """What is known before the next batch: the atoms of a fit, or those of a start."""
        if not hasattr(self, "atoms_"):
            if self._found is not None:
                spread = self._needs_spread(problem)
                atoms = self._first_atoms(problem, self._found, spread=spread)
                return minibatch.Stream.from_atoms(atoms)
            state = start(problem, self.init, check_random_state(self.random_state))
            atoms = em.above_floor(problem, state).atoms
            return minibatch.Stream.from_atoms(atoms)
        activations = np.asarray(self.activations_) / self._unit
        by_newton = self.solver != "em"
        return minibatch.known(problem, self.atoms_, activations, by_newton=by_newton)

    def _learn(
        self, problem: Problem, stream: minibatch.Stream, total: float
    ) -> tuple[minibatch.Stream, minibatch.BatchResult]:
        return minibatch.learn_maximum(problem, stream, total, self.solver)

    def _publish_batch(self, problem: Problem, result: minibatch.BatchResult, total: float) -> None:
        """Set the fitted attributes after a batch."""
        self.atoms_ = self._stream.atoms
        self.activations_ = self._in_unit_of_data(problem, result.activations)
        value = em.objective(problem, self.atoms_, 0.0, total * result.objective)
        self.objectives_ = np.append(getattr(self, "objectives_", ()), value)
        self.objective_ = value
        self._publish_stream()
        self._publish_explained(problem, self.activations_, warn=False)
        self.solver_ = self._stream.solver
        new = dispersion(problem, problem.data.total_weight * result.data_term)
        share = minibatch.step_weight(self._stream.n_steps - 1)
        self.dispersion_ = (1 - share) * getattr(self, "dispersion_", new) + share * new
        self._publish_noise(problem)

    @staticmethod
    def _finish(problem: Problem, result: Result[em.Factors]) -> Result[em.Factors]:
        """Solve for the activations, so that they are those that `transform` would return."""
        state = refine_maximum(problem, result.state)
        return result.ending_with(state, em.evaluate(problem, state))

    def _publish(self, problem: Problem, result: Result[em.Factors]) -> None:
        """Set the fitted attributes."""
        self.atoms_ = result.state.atoms
        activations = self._in_unit_of_data(problem, result.state.activations)
        activations = problem.executor.persist(activations)
        self.activations_ = self._gather(problem, activations)
        self._publish_explained(problem, activations)
        self.objectives_ = np.array(result.objectives)
        self.objective_ = result.objectives[-1]
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.stop_reason_ = result.reason
        if self._likelihood() is not Dispersed:
            self.dispersion_ = dispersion_at(problem, result.state, self.objective_)
        self._publish_noise(problem)

    def _refitting(self) -> tuple[SkellamSNMF, dict[str, NDArray]]:
        """An estimator that fits the same to other data, and the start values for it."""
        estimator = clone(self).set_params(
            n_components=len(self.components_), n_init=1, n_jobs=1, verbose=0, batch_size=None
        )
        estimator.set_params(scale_features=False)
        estimator._known_price = self._price if np.isfinite(self._price) else None
        return estimator, {"atoms": self.atoms_, "activations": self.activations_}

    def _solve_rows(self, problem: Problem) -> Any:
        """Activations of the problem's samples, given the fitted atoms."""
        return self._in_unit_of_data(problem, solve_maximum(problem, self.atoms_))

    def _in_unit_of_data(self, problem: Problem, activations: Any) -> Any:
        (scaled,), _ = problem.over_samples(_scale_samples, (activations,), self._unit)
        return scaled


@per_sample(rows=1)
def _scale_samples(problem: Problem, activations: NDArray, unit: float) -> tuple[tuple, tuple]:
    """Activations in another unit, in the type of the data."""
    return ((activations * activations.dtype.type(unit)).astype(problem.dtype),), ()
