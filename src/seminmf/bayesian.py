"""BayesianSkellamSNMF: semi-NMF with full posteriors, by variational Bayes."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.stats import gamma
from sklearn.utils.validation import check_is_fitted, check_random_state

from ._algorithms import em, loop, minibatch, vb
from ._algorithms.acceleration import accelerate
from ._algorithms.activations import refine_posterior, solve_maximum, solve_posterior
from ._algorithms.choice import choose_algorithm
from ._algorithms.problem import Prior, Problem
from ._algorithms.start import METHODS as STARTS
from ._algorithms.start import start
from ._data.executor import per_sample
from ._estimators import validation as check
from ._estimators.base import Data, like
from ._estimators.batches import BatchSkellamSNMF
from ._estimators.skellam import count_observed, dispersion
from ._numerics.random import draw_dirichlet
from .special import exp_digamma

# How far the point is fitted that the posterior starts from, with init="map".
_MODE_TOLERANCE = 1e-4
# The preliminary fit that finds the noise level.
_GENEROUS = 10
_PRELIMINARY_ITERATIONS = 200
_PRELIMINARY_TOLERANCE = 1e-4
_PRELIMINARY_PRIOR = Prior(*(np.full((1,) * n, v) for n, v in ((2, 1.0), (2, 1e-3), (3, 1.0))))


class Interval(NamedTuple):
    """Lower and upper end of credible intervals."""

    lower: NDArray
    upper: NDArray


class Intervals(NamedTuple):
    """Credible intervals of the activations (J, K) and of the components (K, I)."""

    activations: Interval
    components: Interval


class BayesianSkellamSNMF(BatchSkellamSNMF):
    """Semi-nonnegative matrix factorization with a posterior for everything.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, K.
    likelihood : {"real", "integer"}, default="real"
        "real" for any numbers (M = ∞ of the paper), "integer" for counts and differences of counts
        (M = 1).
    activation_shape_prior : float or array-like, default=1.0
        Shape of the activations' gamma prior: a number, or broadcasting to
        (n_samples, n_components).
    activation_rate_prior : float or array-like, default=1e-3
        Its rate, above 0, for data in units of `scale`.
    atom_shape_prior : float or array-like, default=1.0
        Shape of the atoms' Dirichlet prior: a number, or broadcasting to
        (2, n_components, n_features).
    acceleration : {"squarem", "parabolic", None}, default="squarem"
        How VBEM is extrapolated. An iteration is then a cycle of three or four passes over the
        data, of which two are the paper's iterations; the bound never falls. With None an
        iteration is the paper's.
    init : {"random", "kmeans", "svd", "prior", "map"}, default="random"
        Start values, where `fit` is not given any. "map" is the maximum a posteriori, found by
        Newton's method from a random start.
    n_init : int, default=1
        Number of starts, of which the one with the best bound is kept.
    max_iter : int, default=3000
        Most iterations of a run.
    tol : float, default=1e-4
        A run has converged when the bound gained less than `tol` times its size over the last 20
        iterations. 0 never stops before `max_iter`.
    check_integer : bool, default=True
        Whether likelihood "integer" refuses data that are no integers.
    random_state : int, RandomState or None, default=None
        Source of the start values. The same seed gives the same bits, whatever `n_jobs`.
    n_jobs : int or None, default=None
        Threads. None and -1 are all cores; small problems use one in any case.
    verbose : int, default=0
        1 shows a progress bar.
    scale : float or "auto", default="auto"
        X / scale is what the model sees: for real data the unit of X is the noise level, and all
        posteriors depend on it. "auto" takes the dispersion of a preliminary fit, so that results
        do not depend on the unit. 1.0 is the paper's model, and the only one for integers.
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
        Posterior means of the signed components.
    atoms_ : ndarray of shape (2, n_components, n_features)
        Posterior means of their positive and negative parts.
    activations_ : ndarray of shape (n_samples, n_components)
        Posterior means of the activations, in the unit of X.
    atom_shape_ : ndarray of shape (2, n_components, n_features)
        Dirichlet posterior of the atoms.
    activation_shape_, activation_rate_ : ndarrays of shape (n_samples, n_components)
        Gamma posteriors of the activations, in the unit of X.
    lower_bound_ : float
        Normalised evidence lower bound (ELBO) of X / scale.
    lower_bounds_ : ndarray of shape (n_iter_ + 1,)
        Its values from the start to the end.
    n_iter_ : int
        Iterations of the best run, and batches since.
    converged_ : bool
        Whether that run met the rule of `tol`.
    stop_reason_ : {"tolerance", "max_iter", "interrupted"}
        Why that run ended: by the rule of `tol`, for want of iterations, or by Ctrl-C.
    dispersion_ : float
        The scale that was used.
    stability_ : float
        Mean cosine between the components of the best run and of the others, after matching; NaN
        for a single run.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has feature names.

    Notes
    -----
    The posterior is a mean-field approximation, and its intervals are too narrow; the page on
    intervals in the documentation says by how much.

    References
    ----------
    B. Fuentes and G. Richard, "Probabilistic semi-nonnegative matrix factorization: a Skellam-based
    framework", 2021.

    Examples
    --------
    >>> from seminmf import BayesianSkellamSNMF, sample_skellam_snmf
    >>> X, _, _ = sample_skellam_snmf(100, 5, 2, random_state=0)
    >>> model = BayesianSkellamSNMF(2, likelihood="integer", random_state=0).fit(X)
    >>> lower, upper = model.interval(0.9).activations
    >>> bool((lower < model.activations_).all() and (model.activations_ < upper).all())
    True
    """

    _starts = (*STARTS, "map")
    _needs_rate = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        likelihood: str = "real",
        activation_shape_prior: ArrayLike = 1.0,
        activation_rate_prior: ArrayLike = 1e-3,
        atom_shape_prior: ArrayLike = 1.0,
        acceleration: str | None = "squarem",
        init: str = "random",
        n_init: int = 1,
        max_iter: int = 3000,
        tol: float = 1e-4,
        check_integer: bool = True,
        random_state: int | RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        scale: float | str = "auto",
        sparse_zeros: str = "missing",
        batch_size: int | None = None,
        total_samples: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.likelihood = likelihood
        self.activation_shape_prior = activation_shape_prior
        self.activation_rate_prior = activation_rate_prior
        self.atom_shape_prior = atom_shape_prior
        self.acceleration = acceleration
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.check_integer = check_integer
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.scale = scale
        self.sparse_zeros = sparse_zeros
        self.batch_size = batch_size
        self.total_samples = total_samples

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        atom_shape: ArrayLike | None = None,
        activation_shape: ArrayLike | None = None,
        frozen: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> BayesianSkellamSNMF:
        """Fit the posterior to X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data of any sign, NaN where not observed.
        y : None
            Not used.
        atom_shape : array-like of shape (2, n_components, n_features)
            Posterior shapes to start from. Components whose shapes are NaN are initialised as
            `init` says.
        activation_shape : array-like of shape (n_samples, n_components)
            Posterior shapes to start from.
        frozen : array-like of bool of shape (n_components,), or of indices
            Components that keep the `atom_shape` given.
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
        self._check_scale()
        data = self._check_data(X, fitted=False)
        n_samples, n_features = data.source.shape
        prior = check.check_prior(self, n_samples, n_features, positive_rate=True)
        weights = check.check_weight(sample_weight, n_samples)
        given = self._check_starts(atom_shape, activation_shape, n_samples, n_features)
        mask = check.check_frozen(frozen, self.n_components, given[1])
        self._check_batches(data, activation_shape=activation_shape, checkpoint=checkpoint)
        check.record_features(self, X)
        self._stream = None
        self._warn_unobserved(data.summary)
        self._choose_unit(data)
        starts = {"activation_shape": given[0], "atom_shape": given[1]}
        journal, random = self._journal(
            checkpoint, checkpoint_every, data.source, **starts, frozen=mask, weights=weights
        )
        self.dispersion_, interrupted = self._find_scale(data, weights, journal)
        self._choose_unit(data, self.dispersion_)
        sizes = (n_samples, self.n_components, n_features)
        with self._problem(
            data,
            prior,
            self.dispersion_,
            sample_weight=weights,
            frozen=mask,
            prior_constant=vb.prior_constant(prior, sizes, weights),
            recorder=journal,
        ) as problem:
            run = partial(self._run, problem, given, interrupted)
            best = self._best_run(run, lambda state: _mean_components(state.atom_shape), random)
            self._publish(problem, best.result)
        self.stability_ = best.stability
        return self

    def _check_scale(self) -> None:
        automatic = isinstance(self.scale, str) and self.scale == "auto"
        number = (
            isinstance(self.scale, (int, float, np.number))
            and not isinstance(self.scale, bool)
            and 0 < self.scale < np.inf
        )
        if not automatic and not number:
            raise ValueError(f"scale must be 'auto' or a number above 0; found {self.scale!r}.")
        if self.likelihood == "integer" and number and self.scale != 1:
            raise ValueError(
                f"scale must be 1 or 'auto' for likelihood='integer'; found {self.scale!r}."
            )

    def _check_starts(
        self,
        atom_shape: ArrayLike | None,
        activation_shape: ArrayLike | None,
        n_samples: int,
        n_features: int,
    ) -> tuple[NDArray | None, NDArray | None]:
        """Posterior shapes to start from: of the right shape, and above 0."""
        given: list[NDArray | None] = []
        for name, value, shape in (
            ("activation_shape", activation_shape, (n_samples, self.n_components)),
            ("atom_shape", atom_shape, (2, self.n_components, n_features)),
        ):
            if value is not None:
                value = check.check_start(name, value, shape, gaps=name == "atom_shape")
                if np.any(value == 0):
                    raise ValueError(f"{name} must be above 0; found 0.")
                if name == "atom_shape":
                    check.check_whole(name, value)
            given.append(value)
        return given[0], given[1]

    def _scale_for(self, X: Any) -> float:
        """The scale that a fit to X would use."""
        self._check_parameters()
        self._check_scale()
        data = self._check_data(X, fitted=False)
        self._choose_unit(data)
        scale, interrupted = self._find_scale(data, np.ones(data.source.shape[0]))
        if interrupted:
            raise KeyboardInterrupt
        return scale

    def _find_scale(
        self, data: Data, weights: NDArray, recorder: loop.Recorder = loop.UNRECORDED
    ) -> tuple[float, bool]:
        """The scale to use, and whether Ctrl-C ended the search for it.

        "auto" is the dispersion of a point estimate with many components.
        """
        if self.scale != "auto":
            return float(self.scale), False
        if self.likelihood == "integer":
            return 1.0, False
        preliminary = partial(self._problem, data, _PRELIMINARY_PRIOR, 1.0, sample_weight=weights)
        # Half of the observed cells are left to judge the noise by.
        n_parameters = float(weights.sum()) + data.source.shape[1]
        with preliminary() as problem:
            most = int(count_observed(problem) / (2 * n_parameters))
        frozen = np.zeros(max(1, min(max(self.n_components, _GENEROUS), most)), dtype=bool)
        with preliminary(frozen=frozen, recorder=recorder) as problem:
            begin = partial(start, problem, "random", check_random_state(0))
            result = self._iterate(
                em, problem, begin, "noise level", _PRELIMINARY_ITERATIONS, _PRELIMINARY_TOLERANCE
            )
            scale = dispersion(problem, -self._unit * em.data_term(problem, result.state))
        return scale, result.interrupted

    def _run(
        self,
        problem: Problem,
        given: tuple[NDArray | None, NDArray | None],
        interrupted: bool,
        random: RandomState,
    ) -> loop.Result[vb.State]:
        """One run from one start; of no iterations, if Ctrl-C has been pressed already."""
        state, interrupted = self._start(problem, given, interrupted, random)
        if self.batch_size is not None and not interrupted:
            return self._run_in_batches(problem, state.atom_shape, random)
        max_iter = 0 if interrupted else self.max_iter
        algorithm = accelerate(vb, self.acceleration)
        # Handed over, and not kept here.
        begin = [state].pop
        del state
        result = self._iterate(algorithm, problem, begin, "VBEM", max_iter, self.tol)
        if interrupted:
            return result._replace(reason="interrupted")
        return self._finish(problem, result) if result.converged else result

    def _start(
        self,
        problem: Problem,
        given: tuple[NDArray | None, NDArray | None],
        interrupted: bool,
        random: RandomState,
    ) -> tuple[vb.State, bool]:
        """Where a run starts: as `init` says, but for what was given; and whether Ctrl-C came."""
        if self.init == "prior" and not _equal_components(problem):
            state = vb.prior_state(problem)
        else:
            method = "random" if self.init == "map" else self.init
            point = start(problem, method, random)
            if self.init == "map" and not interrupted:
                point, interrupted = self._find_mode(problem, point, random)
            state = vb.state_from(problem, point)
        activation_shape, atom_shape = given
        dtype = problem.source.dtype
        if activation_shape is not None:
            shape = problem.place.placed(activation_shape.astype(dtype))
            state = state._replace(activation_shape=shape)
        if atom_shape is not None:
            filled = np.where(np.isnan(atom_shape), state.atom_shape, atom_shape)
            state = state._replace(atom_shape=filled.astype(dtype))
        return state, interrupted

    def _find_mode_in_batches(
        self, problem: Problem, point: em.State, random: RandomState
    ) -> tuple[em.State, bool]:
        learn = partial(minibatch.learn_maximum, solver="newton")
        stream, _, reason = self._run_batches(problem, learn, point.atoms, random)
        solved = solve_maximum(problem, stream.atoms).astype(point.activations.dtype)
        return em.State(solved, stream.atoms), reason == "interrupted"

    def _find_mode(
        self, problem: Problem, point: em.State, random: RandomState
    ) -> tuple[em.State, bool]:
        """The maximum a posteriori near a point, and whether Ctrl-C ended the search for it."""
        if self.batch_size is not None:
            return self._find_mode_in_batches(problem, point, random)
        name, algorithm = choose_algorithm("newton", self.acceleration, problem)
        begin = partial(em.above_floor, problem, point)
        result = self._iterate(algorithm, problem, begin, name, self.max_iter, _MODE_TOLERANCE)
        return result.state, result.interrupted

    def _run_in_batches(
        self, problem: Problem, atom_shape: NDArray, random: RandomState
    ) -> loop.Result[vb.State]:
        stream, objectives, reason = self._run_batches(problem, self._learn, atom_shape, random)
        shape = solve_posterior(problem, stream.atoms).astype(problem.source.dtype)
        state = vb.State(shape, stream.atoms)
        return loop.Result(state, [*objectives, vb.evaluate(problem, state)], reason)

    def _begin(self, data: Data, prior: Prior, weights: NDArray) -> None:
        """Decide on what the first batch decides."""
        self._check_scale()
        self._choose_unit(data)
        self.dispersion_, interrupted = self._find_scale(data, weights)
        if interrupted:
            raise KeyboardInterrupt
        self._choose_unit(data, self.dispersion_)

    def _first_stream(self, problem: Problem) -> minibatch.Stream:
        """What is known before the next batch: the posterior of a fit, or a start."""
        if not hasattr(self, "atom_shape_"):
            method = "random" if self.init == "map" else self.init
            point = start(problem, method, check_random_state(self.random_state))
            atom_shape = vb.state_from(problem, point).atom_shape
            return minibatch.Stream(atom_shape, np.zeros(atom_shape.shape))
        activations = np.asarray(self.activations_) / self._unit
        known = minibatch.known(problem, self.atoms_, activations)
        return known._replace(atoms=self.atom_shape_)

    def _learn(
        self, problem: Problem, stream: minibatch.Stream, total: float
    ) -> tuple[minibatch.Stream, minibatch.Told]:
        return minibatch.learn_posterior(problem, stream, total)

    def _publish_batch(self, problem: Problem, told: minibatch.Told, total: float) -> None:
        """Set the fitted attributes after a batch."""
        self._prior = problem.prior
        self.atom_shape_ = self._stream.atoms
        self.atoms_ = self.atom_shape_ / self.atom_shape_.sum(axis=(0, 2), keepdims=True)
        dtype = problem.source.dtype
        self.activation_shape_ = told.activations.astype(dtype)
        (self.activation_rate_, self.activations_), _ = problem.over_samples(
            _posterior_samples, (told.activations,), self.dispersion_
        )
        value = vb.bound_of_batch(problem, self.atom_shape_, total, told.objective)
        self.lower_bounds_ = np.append(getattr(self, "lower_bounds_", ()), value)
        self.lower_bound_ = value
        self._publish_stream()

    @staticmethod
    def _finish(problem: Problem, result: loop.Result[vb.State]) -> loop.Result[vb.State]:
        """Solve for the activations, so that they are those that `transform` would return."""
        state = refine_posterior(problem, result.state)
        return result.ending_with(state, vb.evaluate(problem, state))

    def _publish(self, problem: Problem, result: loop.Result[vb.State]) -> None:
        """Set the fitted attributes."""
        self._prior = problem.prior
        shape, self.atom_shape_ = result.state
        (rate, means), _ = problem.over_samples(_posterior_samples, (shape,), self.dispersion_)
        self.activation_shape_, self.activation_rate_, self.activations_ = (
            self._hand_out(problem, problem.place.kept(rows)) for rows in (shape, rate, means)
        )
        self.atoms_ = self.atom_shape_ / self.atom_shape_.sum(axis=(0, 2), keepdims=True)
        self.lower_bounds_ = np.array(result.objectives)
        self.lower_bound_ = result.objectives[-1]
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.stop_reason_ = result.reason

    def _prior_scale(self) -> float:
        return self.dispersion_

    def _solve_rows(self, problem: Problem) -> Any:
        """Posterior means of the activations of the problem's samples, given the atoms'."""
        shape = solve_posterior(problem, self.atom_shape_)
        (_, means), _ = problem.over_samples(_posterior_samples, (shape,), self.dispersion_)
        return means

    def _membership(self, data: Data) -> NDArray:
        with self._fitted_problem(data) as problem:
            shape = solve_posterior(problem, self.atom_shape_)
            (means,), _ = problem.over_samples(_geometric_samples, (shape,))
            return self._hand_out(problem, means)

    def _training_membership(self) -> NDArray:
        shape = self.activation_shape_
        if hasattr(shape, "map_blocks"):  # not to bring it here
            return shape.map_blocks(exp_digamma) / self.activation_rate_
        return exp_digamma(shape) / self.activation_rate_

    # --- posterior --------------------------------------------------------------------------

    def sample(
        self, n: int = 1, random_state: int | RandomState | None = None
    ) -> tuple[NDArray, NDArray]:
        """Draw from the posterior.

        Parameters
        ----------
        n : int, default=1
            Number of draws.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        activations : ndarray of shape (n, n_samples, n_components)
            In the unit of X.
        atoms : ndarray of shape (n, 2, n_components, n_features)
        """
        check_is_fitted(self)
        check.check_count("n", n)
        random = check_random_state(random_state)
        activations = random.gamma(
            self.activation_shape_.astype(np.float64), size=(n, *self.activation_shape_.shape)
        )
        return activations / self.activation_rate_, self._sample_atoms(n, random)

    def _sample_atoms(self, n: int, random: RandomState) -> NDArray:
        shape = self.atom_shape_.astype(np.float64)
        return draw_dirichlet(np.broadcast_to(shape, (n, *shape.shape)), random, axes=(1, 3))

    def to_arviz(self, n_draws: int = 1000, random_state: int | RandomState | None = 0) -> Any:
        """Draws from the posterior for ArviZ, which must be installed.

        Parameters
        ----------
        n_draws : int, default=1000
            Number of draws. All are in memory: (n_samples + 3 n_features) n_components numbers
            each.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1 on
            The group `posterior` has `activations`, `atoms` and `components`, with the dimensions
            sample, component, sign and feature. The draws are independent, in one chain.
        """
        from ._estimators.arviz import to_arviz

        check_is_fitted(self)
        check.check_count("n_draws", n_draws)
        return to_arviz(self, n_draws, random_state)

    def interval(
        self,
        level: float = 0.9,
        n_draws: int = 1000,
        random_state: int | RandomState | None = 0,
    ) -> Intervals:
        """Credible intervals of activations (exact quantiles) and components (from draws).

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval.
        n_draws : int, default=1000
            Draws of the atoms.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        Intervals
            `.activations` and `.components`, each with `.lower` and `.upper`.
        """
        check_is_fitted(self)
        tails = _tails(level)
        check.check_count("n_draws", n_draws)
        activations = Interval(
            *(
                gamma.ppf(tail, self.activation_shape_, scale=1 / self.activation_rate_)
                for tail in tails
            )
        )
        # One component at a time: the draws of all may need much memory.
        random = check_random_state(random_state)
        quantiles = np.empty((2, *self.atom_shape_.shape[1:]))
        for k in range(self.n_components):
            shape = self.atom_shape_[:, k : k + 1].astype(np.float64)
            atoms = draw_dirichlet(
                np.broadcast_to(shape, (n_draws, *shape.shape)), random, axes=(1, 3)
            )
            quantiles[:, k] = np.quantile(atoms[:, 0, 0] - atoms[:, 1, 0], tails, axis=0)
        return Intervals(activations, Interval(*quantiles))

    def impute(
        self,
        X: Any,
        return_interval: bool = False,
        level: float = 0.9,
        n_draws: int = 200,
        random_state: int | RandomState | None = 0,
    ) -> Any:
        """X with its gaps filled by the factorization, with intervals for what was filled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        return_interval : bool, default=False
            Whether to return the ends of the predictive intervals as well.
        level : float, default=0.9
            Probability of each interval.
        n_draws : int, default=200
            Draws from the posterior, for the intervals.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        filled : ndarray or DataFrame of shape (n_samples, n_features)
            A DataFrame if X is one.
        lower, upper : ndarrays or DataFrames
            With `return_interval`: ends of the intervals in which a new observation falls, noise
            included. They equal X where it is observed.
        """
        if not return_interval:
            return super().impute(X)
        self._check_transformable()
        tails = _tails(level)
        check.check_count("n_draws", n_draws)
        data = self._check_data(X)
        with self._fitted_problem(data) as problem:
            rows = solve_posterior(problem, self.atom_shape_)
            (_, means), _ = problem.over_samples(_posterior_samples, (rows,), self.dispersion_)
        shape = np.asarray(rows)
        filled = self._fill(X, data, means)
        random = check_random_state(random_state)
        observed = data.source.rows(0, data.source.shape[0])
        ends = [np.array(observed, dtype=np.float64) for _ in tails]
        gaps = np.nonzero(np.isnan(observed))
        quantiles = np.quantile(self._draw_cells(shape, gaps, n_draws, random), tails, axis=0)
        for end, values in zip(ends, quantiles, strict=True):
            end[gaps] = values
        return filled, *(like(X, end) for end in ends)

    def _draw_cells(
        self, shape: NDArray, cells: tuple[NDArray, ...], n_draws: int, random: RandomState
    ) -> NDArray:
        """Draws (n_draws, n_cells) of new observations in the cells given, by posterior shapes."""
        scale = self.dispersion_ / (1 + self._prior.activation_rate)
        rows_, columns = cells
        draws = np.empty((n_draws, len(rows_)))
        for draw in draws:
            activations = scale * random.gamma(shape)
            atoms = self._sample_atoms(1, random)[0]
            rate0, rate1 = (
                np.einsum("nk,nk->n", activations[rows_], atom.T[columns]) for atom in atoms
            )
            if self.likelihood == "integer":
                draw[:] = random.poisson(rate0) - random.poisson(rate1)
            else:
                # A cell of X / φ has variance λ₀ + λ₁.
                noise = np.sqrt(self.dispersion_) * np.sqrt(rate0 + rate1)
                draw[:] = rate0 - rate1 + noise * random.normal(size=len(rows_))
        return draws


def _tails(level: float) -> tuple[float, float]:
    level = check.check_level(level)
    return (1 - level) / 2, (1 + level) / 2


def _mean_components(atom_shape: NDArray) -> NDArray:
    """Posterior mean of the signed components."""
    return (atom_shape[0] - atom_shape[1]) / atom_shape.sum(axis=(0, 2))[:, None]


def _equal_components(problem: Problem) -> bool:
    """Whether the priors do not tell the components apart."""
    return problem.n_components > 1 and all(
        parameter.shape[1] == 1 or bool(np.all(parameter == parameter[:, :1]))
        for parameter in problem.prior
    )


@per_sample(rows=2)
def _posterior_samples(problem: Problem, shape: NDArray, dispersion: float) -> tuple[tuple, tuple]:
    """Posterior rates and means of activations, in the unit of X and the type of the data."""
    dtype = problem.source.dtype
    rate = (1 + problem.prior.activation_rate) / dispersion
    means = np.divide(shape, rate, out=np.empty(shape.shape, dtype))
    return (np.broadcast_to(rate, shape.shape).astype(dtype), means), ()


@per_sample(rows=1)
def _geometric_samples(problem: Problem, shape: NDArray) -> tuple[tuple, tuple]:
    """Geometric means of the activations' posterior, but for the unit."""
    return (exp_digamma(shape) / (1 + problem.prior.activation_rate),), ()
