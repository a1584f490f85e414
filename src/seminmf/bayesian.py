"""BayesianSkellamSNMF: semi-NMF with full posteriors, by variational Bayes."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_random_state

from ._algorithms import em, minibatch, vb
from ._algorithms.acceleration import accelerate
from ._algorithms.activations import (
    posterior_samples,
    refine_posterior,
    solve_maximum,
    solve_posterior,
)
from ._algorithms.choice import choose_algorithm
from ._algorithms.loop import UNRECORDED, Result, Stopping
from ._algorithms.problem import Problem
from ._algorithms.start import METHODS as STARTS
from ._algorithms.start import start
from ._data.source import Data
from ._estimators import validation as check
from ._estimators.batches import BatchSkellamSNMF
from ._estimators.build import find_dispersion
from ._estimators.checkpoint import unlocks_checkpoint
from ._estimators.files import COMMON_SCALARS, TRACE, ArrayField, FittedFields
from ._estimators.posterior import PosteriorSkellamSNMF
from ._estimators.runs import Runner
from ._estimators.transaction import fits
from ._model.model import Priors

# How far the point is fitted that the posterior starts from, with init="map".
_MODE_TOLERANCE = 1e-4


class BayesianSkellamSNMF(PosteriorSkellamSNMF, BatchSkellamSNMF):
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
        X / scale is what the model sees: for real data the unit of X is the dispersion, and all
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
    amounts_ : ndarray of shape (n_samples, n_components)
        What each component puts into each sample: activation × Σ |component|, of their means.
    r2_ : float
        R² of the observed cells, 1 − Σ (x − activations · components)² / Σ x²; `r2` has more on it.
    r2_drop_ : ndarray of shape (n_components,)
        What R² falls by when a component is taken out and the others stay as they are.
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
    component_stability_ : ndarray of shape (n_components,)
        Mean cosine of each component with its match in the other starts; NaN for a single start.
    stability_ : float
        Its mean.
    n_same_starts_ : int
        Number of starts that found the components of the best, with a cosine of 0.95 or more.
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
    _fitted_fields = FittedFields(
        arrays={
            "atoms_": ArrayField("2KI"),
            "activations_": ArrayField("JK"),
            "atom_shape_": ArrayField("2KI", "positive"),
            "activation_shape_": ArrayField("JK", "positive"),
            "activation_rate_": ArrayField("JK", "positive"),
            "lower_bounds_": TRACE,
        },
        scalars={**COMMON_SCALARS, "dispersion_": float, "lower_bound_": float},
        has_priors=True,
        stream_atoms="atom_shape_",
    )

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

    @fits
    @unlocks_checkpoint
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
        n_samples, n_features = data.shape
        priors = self._check_priors(n_samples, n_features)
        weights = check.check_weight(sample_weight, data)
        given = self._check_starts(atom_shape, activation_shape, n_samples, n_features)
        mask = check.check_frozen(frozen, self.n_components, given[1])
        self._check_batches(data, activation_shape=activation_shape)
        check.record_features(self, X)
        self._keep_parameters()
        self._warn_unobserved(data.summary)
        starts = {"activation_shape": given[0], "atom_shape": given[1]}
        runner, random = self._runner(
            checkpoint, checkpoint_every, data.source, **starts, frozen=mask, weights=weights
        )
        data = data._replace(weights=weights)
        self.dispersion_, interrupted = self._find_scale(data, runner)
        self._choose_unit(data, self.dispersion_)
        with self._problem(data, priors, self.dispersion_, mask) as problem:
            run = partial(self._run, problem, runner, given, interrupted, random)
            best = self._best_run(run, lambda state: _mean_components(state.atom_shape))
            self._publish(problem, best.result)
        self._publish_starts(best.stability, best.n_same)
        return self

    def _check_scale(self) -> None:
        automatic = isinstance(self.scale, str) and self.scale == "auto"
        number = check.is_number(self.scale) and 0 < float(self.scale) < np.inf
        if not automatic and not number:
            raise ValueError(f"scale must be 'auto' or a number above 0; found {self.scale!r}.")
        known = self._likelihood().known_dispersion
        if known is not None and number and self.scale != known:
            raise ValueError(
                f"scale must be {known:g} or 'auto' for likelihood={self.likelihood!r}; "
                f"found {self.scale!r}."
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
        scale, interrupted = self._find_scale(data, Runner(UNRECORDED, bool(self.verbose)))
        if interrupted:
            raise KeyboardInterrupt
        return scale

    def _find_scale(self, data: Data, runner: Runner) -> tuple[float, bool]:
        """The scale to use, and whether Ctrl-C ended the search for it.

        "auto" is the dispersion of a point estimate with many components.
        """
        likelihood = self._likelihood()
        if self.scale != "auto":
            return float(self.scale), False
        if likelihood.known_dispersion is not None:
            return likelihood.known_dispersion, False
        self._choose_unit(data)
        return find_dispersion(
            likelihood(self._unit, 1.0), data, self.n_components, self.n_jobs, runner
        )

    def _run(
        self,
        problem: Problem,
        runner: Runner,
        given: tuple[NDArray | None, NDArray | None],
        interrupted: bool,
        random: RandomState,
    ) -> Result[vb.Posteriors]:
        """One run from one start; of no iterations, if Ctrl-C has been pressed already."""
        state, interrupted = self._start(problem, runner, given, interrupted, random)
        if self.batch_size is not None and not interrupted:
            return self._run_in_batches(problem, runner, state.atom_shape, random)
        stopping = Stopping(0 if interrupted else self.max_iter, self.tol)
        # Handed over, and not kept here.
        begin = [state].pop
        del state
        result = runner.run(accelerate(vb, self.acceleration), problem, begin, "VBEM", stopping)
        if interrupted:
            return result._replace(reason="interrupted")
        return self._finish(problem, result) if result.converged else result

    def _start(
        self,
        problem: Problem,
        runner: Runner,
        given: tuple[NDArray | None, NDArray | None],
        interrupted: bool,
        random: RandomState,
    ) -> tuple[vb.Posteriors, bool]:
        """Where a run starts: as `init` says, but for what was given; and whether Ctrl-C came."""
        if self.init == "prior" and _tells_apart(problem):
            state = vb.prior_state(problem)
        else:
            method = "random" if self.init == "map" else self.init
            point = start(problem, method, random)
            if self.init == "map" and not interrupted:
                point, interrupted = self._find_mode(problem, runner, point, random)
            state = vb.state_from(problem, point)
        activation_shape, atom_shape = given
        dtype = problem.dtype
        if activation_shape is not None:
            shape = problem.executor.scatter(activation_shape.astype(dtype))
            state = state._replace(activation_shape=shape)
        if atom_shape is not None:
            filled = np.where(np.isnan(atom_shape), state.atom_shape, atom_shape)
            state = state._replace(atom_shape=filled.astype(dtype))
        return state, interrupted

    def _find_mode(
        self, problem: Problem, runner: Runner, point: em.Factors, random: RandomState
    ) -> tuple[em.Factors, bool]:
        """The maximum a posteriori near a point, and whether Ctrl-C ended the search for it."""
        if self.batch_size is not None:
            learn = partial(minibatch.learn_maximum, solver="newton")
            found = self._run_batches(problem, runner, learn, point.atoms, random)
            atoms = found.state.atoms
            solved = solve_maximum(problem, atoms).astype(point.activations.dtype)
            return em.Factors(solved, atoms), found.interrupted
        name, algorithm = choose_algorithm("newton", self.acceleration, problem)
        begin = partial(em.above_floor, problem, point)
        stopping = Stopping(self.max_iter, _MODE_TOLERANCE)
        result = runner.run(algorithm, problem, begin, name, stopping)
        return result.state, result.interrupted

    def _run_in_batches(
        self, problem: Problem, runner: Runner, atom_shape: NDArray, random: RandomState
    ) -> Result[vb.Posteriors]:
        result = self._run_batches(problem, runner, self._learn, atom_shape, random)
        atom_shape = result.state.atoms
        shape = solve_posterior(problem, atom_shape).astype(problem.dtype)
        state = vb.Posteriors(shape, atom_shape)
        return Result(state, [*result.objectives[1:], vb.evaluate(problem, state)], result.reason)

    def _begin(self, data: Data, priors: Priors) -> None:
        """Decide on what the first batch decides."""
        self._check_scale()
        runner = Runner(UNRECORDED, bool(self.verbose))
        self.dispersion_, interrupted = self._find_scale(data, runner)
        if interrupted:
            raise KeyboardInterrupt
        self._choose_unit(data, self.dispersion_)

    def _first_stream(self, problem: Problem) -> minibatch.Stream:
        """What is known before the next batch: the posterior of a fit, or a start."""
        if not hasattr(self, "atom_shape_"):
            method = "random" if self.init == "map" else self.init
            point = start(problem, method, check_random_state(self.random_state))
            atom_shape = vb.state_from(problem, point).atom_shape
            return minibatch.Stream.from_atoms(atom_shape)
        activations = np.asarray(self.activations_) / self._unit
        known = minibatch.known(problem, self.atoms_, activations)
        return known._replace(atoms=self.atom_shape_)

    def _learn(
        self, problem: Problem, stream: minibatch.Stream, total: float
    ) -> tuple[minibatch.Stream, minibatch.BatchResult]:
        return minibatch.learn_posterior(problem, stream, total)

    def _publish_batch(self, problem: Problem, result: minibatch.BatchResult, total: float) -> None:
        """Set the fitted attributes after a batch."""
        self._priors = problem.model.priors
        self.atom_shape_ = self._stream.atoms
        self.atoms_ = self.atom_shape_ / self.atom_shape_.sum(axis=(0, 2), keepdims=True)
        self.activation_shape_ = result.activations.astype(problem.dtype)
        (self.activation_rate_, self.activations_), _ = problem.over_samples(
            posterior_samples, (result.activations,)
        )
        value = vb.bound_of_batch(problem, self.atom_shape_, total, result.objective)
        self.lower_bounds_ = np.append(getattr(self, "lower_bounds_", ()), value)
        self.lower_bound_ = value
        self._publish_stream()
        self._publish_explained(problem, self.activations_, warn=False)

    @staticmethod
    def _finish(problem: Problem, result: Result[vb.Posteriors]) -> Result[vb.Posteriors]:
        """Solve for the activations, so that they are those that `transform` would return."""
        state = refine_posterior(problem, result.state)
        return result.ending_with(state, vb.evaluate(problem, state))

    def _publish(self, problem: Problem, result: Result[vb.Posteriors]) -> None:
        """Set the fitted attributes."""
        self._priors = problem.model.priors
        shape, self.atom_shape_ = result.state
        (rate, means), _ = problem.over_samples(posterior_samples, (shape,))
        self.activation_shape_, self.activation_rate_, self.activations_ = (
            self._gather(problem, problem.executor.persist(rows)) for rows in (shape, rate, means)
        )
        self.atoms_ = self.atom_shape_ / self.atom_shape_.sum(axis=(0, 2), keepdims=True)
        self._publish_explained(problem, means)
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
        (_, means), _ = problem.over_samples(posterior_samples, (shape,))
        return means


def _mean_components(atom_shape: NDArray) -> NDArray:
    """Posterior mean of the signed components."""
    return (atom_shape[0] - atom_shape[1]) / atom_shape.sum(axis=(0, 2))[:, None]


def _tells_apart(problem: Problem) -> bool:
    """Whether the priors tell the components apart, or there is one only."""
    return problem.n_components == 1 or problem.model.priors.tell_components_apart()
