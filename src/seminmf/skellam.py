"""SkellamSNMF: semi-NMF by maximum a posteriori."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_random_state

from ._algorithms import em, minibatch
from ._algorithms.activations import refine_maximum, solve_maximum
from ._algorithms.choice import choose_algorithm
from ._algorithms.dispersion import dispersion, dispersion_at
from ._algorithms.loop import Result, Stopping
from ._algorithms.problem import Problem
from ._algorithms.start import start
from ._data.executor import per_sample
from ._data.source import Data
from ._estimators import validation as check
from ._estimators.batches import BatchSkellamSNMF
from ._estimators.checkpoint import unlocks_checkpoint
from ._estimators.files import COMMON_SCALARS, TRACE, ArrayField, FittedFields
from ._estimators.runs import Runner
from ._estimators.transaction import fits
from ._model.model import Priors

SOLVERS = ("newton", "em")


class SkellamSNMF(BatchSkellamSNMF):
    """Semi-nonnegative matrix factorization, X ≈ activations · components, point estimates.

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
        Its rate. With the default shapes it is a number without unit, and suits data of any unit.
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
    init : {"random", "kmeans", "svd", "prior"}, default="random"
        Start values, where `fit` is not given any.
    n_init : int, default=1
        Number of starts, of which the best is kept.
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
    dispersion_ : float
        Dispersion of real data, 2ΣD / degrees of freedom; 1 for integers.
    stability_ : float
        Mean cosine between the components of the best run and of the others, after matching; NaN
        for a single run.
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
    >>> X = np.array([[3, -1, 2], [6, -2, 4], [-1, 4, 1], [-2, np.nan, 2], [2, 3, 3]])
    >>> model = SkellamSNMF(n_components=2, tol=1e-3, random_state=0).fit(X)
    >>> model.impute(X).round()
    array([[ 3., -1.,  2.],
           [ 6., -2.,  4.],
           [-1.,  4.,  1.],
           [-2.,  8.,  2.],
           [ 2.,  3.,  3.]])
    """

    _needs_rate = False
    _fitted_fields = FittedFields(
        arrays={
            "atoms_": ArrayField("2KI"),
            "activations_": ArrayField("JK"),
            "objectives_": TRACE,
        },
        scalars={**COMMON_SCALARS, "dispersion_": float, "objective_": float},
        has_priors=True,
        stream_atoms="atoms_",
    )

    def __init__(
        self,
        n_components: int = 2,
        *,
        likelihood: str = "real",
        activation_shape_prior: ArrayLike = 1.0,
        activation_rate_prior: ArrayLike = 1e-3,
        atom_shape_prior: ArrayLike = 1.0,
        solver: str = "newton",
        acceleration: str | None = "squarem",
        init: str = "random",
        n_init: int = 1,
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
        n_samples, n_features = data.shape
        priors = check.check_priors(self, n_samples, n_features, positive_rate=False)
        weights = check.check_weight(sample_weight, data)
        if atoms is not None:
            atoms = check.check_atoms(atoms, self.n_components, n_features)
        mask = check.check_frozen(frozen, self.n_components, atoms)
        if activations is not None:
            activations = check.check_start(
                "activations", activations, (n_samples, self.n_components)
            )
        self._check_batches(data, activations=activations)
        check.record_features(self, X)
        self._keep_parameters()
        self._warn_unobserved(data.summary)
        self._choose_unit(data, 1.0 if self._priors_speak(priors) else None)
        given = {"atoms": atoms, "activations": activations, "frozen": mask, "weights": weights}
        runner, random = self._runner(checkpoint, checkpoint_every, data.source, **given)
        data = data._replace(weights=weights)
        with self._problem(data, priors, self._prior_scale(), mask) as problem:
            run = partial(self._run, problem, runner, atoms, activations, random)
            best = self._best_run(run, lambda state: state.atoms[0] - state.atoms[1])
            self._publish(problem, best.result)
        self.stability_ = best.stability
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
        random: RandomState,
    ) -> Result[em.Factors]:
        """One run from one start."""
        if self.batch_size is not None:
            first = self._start(problem, atoms, activations, random).atoms
            return self._run_in_batches(problem, runner, first, random)
        name, algorithm = choose_algorithm(self.solver, self.acceleration, problem)
        begin = partial(self._start, problem, atoms, activations, random)
        stopping = Stopping(self.max_iter, self.tol)
        result = runner.run(algorithm, problem, begin, name, stopping)
        return self._finish(problem, result) if result.converged else result

    def _start(
        self,
        problem: Problem,
        atoms: NDArray | None,
        activations: NDArray | None,
        random: RandomState,
    ) -> em.Factors:
        """Where a run starts: as `init` says, but for what was given."""
        state = start(problem, self.init, random)
        dtype = problem.dtype
        if atoms is not None:
            state = state._replace(
                atoms=np.where(np.isnan(atoms), state.atoms, atoms).astype(dtype)
            )
        if activations is not None:
            given = (activations / self._unit).astype(dtype)
            state = state._replace(activations=problem.executor.scatter(given))
        return em.above_floor(problem, state)

    def _run_in_batches(
        self, problem: Problem, runner: Runner, atoms: NDArray, random: RandomState
    ) -> Result[em.Factors]:
        result = self._run_batches(problem, runner, self._learn, atoms, random)
        atoms = result.state.atoms
        state = em.Factors(solve_maximum(problem, atoms).astype(problem.dtype), atoms)
        return Result(state, [*result.objectives[1:], em.evaluate(problem, state)], result.reason)

    def _begin(self, data: Data, priors: Priors) -> None:
        """Decide on what the first batch decides."""
        self._choose_unit(data, 1.0 if self._priors_speak(priors) else None)

    def _first_stream(self, problem: Problem) -> minibatch.Stream:
        """What is known before the next batch: the atoms of a fit, or those of a start."""
        if not hasattr(self, "atoms_"):
            state = start(problem, self.init, check_random_state(self.random_state))
            atoms = em.above_floor(problem, state).atoms
            return minibatch.Stream.from_atoms(atoms)
        activations = np.asarray(self.activations_) / self._unit
        return minibatch.known(problem, self.atoms_, activations)

    def _learn(
        self, problem: Problem, stream: minibatch.Stream, total: float
    ) -> tuple[minibatch.Stream, minibatch.BatchResult]:
        return minibatch.learn_maximum(problem, stream, total, self.solver)

    def _publish_batch(self, problem: Problem, result: minibatch.BatchResult, total: float) -> None:
        """Set the fitted attributes after a batch."""
        self._priors = problem.model.priors
        self.atoms_ = self._stream.atoms
        self.activations_ = self._in_unit_of_data(problem, result.activations)
        value = em.objective(problem, self.atoms_, 0.0, total * result.objective)
        self.objectives_ = np.append(getattr(self, "objectives_", ()), value)
        self.objective_ = value
        self._publish_stream()
        new = dispersion(problem, problem.data.total_weight * result.data_term)
        share = minibatch.step_weight(self._stream.n_steps - 1)
        self.dispersion_ = (1 - share) * getattr(self, "dispersion_", new) + share * new

    @staticmethod
    def _finish(problem: Problem, result: Result[em.Factors]) -> Result[em.Factors]:
        """Solve for the activations, so that they are those that `transform` would return."""
        state = refine_maximum(problem, result.state)
        return result.ending_with(state, em.evaluate(problem, state))

    def _publish(self, problem: Problem, result: Result[em.Factors]) -> None:
        """Set the fitted attributes."""
        self._priors = problem.model.priors
        self.atoms_ = result.state.atoms
        activations = self._in_unit_of_data(problem, result.state.activations)
        self.activations_ = self._gather(problem, problem.executor.persist(activations))
        self.objectives_ = np.array(result.objectives)
        self.objective_ = result.objectives[-1]
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.stop_reason_ = result.reason
        self.dispersion_ = dispersion_at(problem, result.state)

    def _prior_scale(self) -> float:
        return 1.0

    def _solve_rows(self, problem: Problem) -> Any:
        """Activations of the problem's samples, given the fitted atoms."""
        return self._in_unit_of_data(problem, solve_maximum(problem, self.atoms_))

    def _in_unit_of_data(self, problem: Problem, activations: Any) -> Any:
        (scaled,), _ = problem.over_samples(_scale_samples, (activations,), self._unit)
        return scaled

    def _membership(self, data: Data) -> NDArray:
        return self._solve(data)

    def _training_membership(self) -> NDArray:
        return self.activations_


@per_sample(rows=1)
def _scale_samples(problem: Problem, activations: NDArray, unit: float) -> tuple[tuple, tuple]:
    """Activations in another unit, in the type of the data."""
    return ((activations * activations.dtype.type(unit)).astype(problem.dtype),), ()
