"""The frame of a fit to tensors, which both estimators share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_random_state

from .._algorithms.acceleration import METHODS as ACCELERATIONS
from .._algorithms.acceleration import accelerate
from .._algorithms.loop import Result, Stopping
from .._algorithms.tensor import TensorProblem
from .._algorithms.tensor_newton import TensorNewton
from .._algorithms.tensor_start import start
from .._data.executor import local_executor
from .._data.tensors import blocks_of
from .._model.language import Plan, read, sizes_of
from .._model.likelihoods import Dispersed, Real
from .._numerics.compiled import announced
from . import validation as check
from .checkpoint import unlocks_checkpoint
from .runs import Best, Runner
from .tensor_build import Blueprint, PriorValues, blueprint
from .tensor_cells import drops, explained, stability
from .tensor_data import open_tensors
from .tensor_draft import Draft, Observed, observe
from .tensor_fitted import Fitted, point_of, with_dispersion
from .tensor_given import check_given, check_priors, check_signed
from .tensor_labels import given_factors
from .tensor_levels import Wanted, wanted, without_noise
from .tensor_noise import Found, find_noise
from .tensor_results import TensorResults
from .tensor_samples import can_solve, is_large, sample_factors, solved
from .transaction import fits

# Rate of free factors where nothing is known of noise: the paper's.
_RATE = 1e-3
# Starts, where noise is sought.
_STARTS_WITH_NOISE = 5
PRIORS = ("activation_shape_prior", "activation_rate_prior", "atom_shape_prior")


class BaseSNTF(TensorResults):
    """Base of the estimators for tensors; not for direct use.

    An estimator has an `_algorithm` whose points are arrays for each factor, and `_first` for the
    point to start from.
    """

    _description: str
    # The attributes with the objective of all iterations, and with the last one.
    _trace: tuple[str, str]

    def __init__(
        self,
        model: Any,
        n_components: Any = 2,
        *,
        signed: Any = None,
        unit: str | None = None,
        likelihood: Any = "real",
        dispersion: Any = "auto",
        noise: Any = "auto",
        activation_shape_prior: Any = 1.0,
        activation_rate_prior: Any = "auto",
        atom_shape_prior: Any = 1.0,
        solver: str = "newton",
        acceleration: str | None = "squarem",
        n_init: int | str = "auto",
        max_iter: int = 3000,
        tol: float = 1e-4,
        check_integer: bool = True,
        random_state: int | RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.n_components = n_components
        self.signed = signed
        self.unit = unit
        self.likelihood = likelihood
        self.dispersion = dispersion
        self.noise = noise
        self.activation_shape_prior = activation_shape_prior
        self.activation_rate_prior = activation_rate_prior
        self.atom_shape_prior = atom_shape_prior
        self.solver = solver
        self.acceleration = acceleration
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.check_integer = check_integer
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
        factors: Mapping[str, ArrayLike] | None = None,
        frozen: Mapping[str, Any] | None = None,
        sample_weight: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> BaseSNTF:
        """Fit to X.

        Parameters
        ----------
        X : array-like with an axis for each letter after "->", or dict of them
            Data, NaN where not observed; a dict by the names of tensors if `model` is one. Of
            sparse arrays of any number of axes what is not stored is a gap; large memory maps,
            HDF5, Zarr and Dask arrays are read in slices of the first axis. The axes of an
            `xarray.DataArray` or a DataFrame are what the factors are labelled with.
            An `xarray.Dataset` is a dict.
        y : None
            Not used.
        factors : dict of array-like, default=None
            Start values by the names of factors, with the axes as written. Signed ones have signs,
            or are given as their two parts, (2, *sizes). What is NaN starts at random. Labels of
            latent letters are taken from DataFrames and xarrays.
        frozen : dict, default=None
            What of them stays: True for all of a factor, a boolean array of its shape, or indices
            of its latent letter. What is 0 and stays is known to be 0.
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
        self._fit(X, factors, frozen, sample_weight, checkpoint, checkpoint_every)
        return self

    @property
    def _newton(self) -> bool:
        """Whether Newton's method is asked for."""
        return self.solver == "newton"

    def _loop_algorithm(self, problem: TensorProblem) -> Any:
        """What the loop runs."""
        self.solver_ = "newton" if problem.modes else "em"
        if problem.modes:
            return TensorNewton(self.acceleration)
        return accelerate(self._algorithm, self.acceleration)

    def _first(self, problem: TensorProblem, arrays: list[NDArray]) -> list[NDArray]:
        """The algorithm's arrays at factors to start from."""
        return arrays

    def _check_parameters(self) -> None:
        check.check_choice("solver", self.solver, ("newton", "em"))
        check.check_choice("acceleration", self.acceleration, ACCELERATIONS)
        if not check.is_auto(self.n_init):
            check.check_count("n_init", self.n_init)
        check.check_count("max_iter", self.max_iter, least=0)
        check.check_tolerance(self.tol)
        check.check_jobs(self.n_jobs)
        check.check_flag("check_integer", self.check_integer)
        check_random_state(self.random_state)

    def _fit(
        self,
        X: Any,
        factors: Any,
        frozen: Any,
        sample_weight: Any,
        checkpoint: Any,
        checkpoint_every: Any,
    ) -> None:
        """Check everything, then fit, then publish."""
        self._check_parameters()
        plan = read(self.model)
        wants = wanted(plan, self.likelihood, self.dispersion, self.noise)
        arrays, labels = open_tensors(plan, X, self._accepted(wants))
        sizes = sizes_of(plan, self.n_components, {n: a.shape for n, a in arrays.items()})
        signed = check_signed(plan, self.signed, _least(arrays))
        _check_signs(plan, signed, wants, arrays)
        factors, labels = given_factors(plan, factors, labels)
        given = check_given(plan, sizes, signed, factors, frozen)
        model = blueprint(plan, sizes, signed, self.unit, given)
        priors = self._check_priors(model, signed)
        weights = _check_weights(model, sample_weight)
        observed = {
            one.name: observe(model, one, arrays[one.name], weights) for one in plan.observations
        }
        _check_observed(observed)
        self._keep_parameters()
        starts = {name: own.parts for name, own in given.items()}
        starts |= {f"frozen {name}": own.frozen.astype(float) for name, own in given.items()}
        runner, random = self._runner(
            checkpoint, checkpoint_every, _Sources(arrays), **starts, weights=weights
        )
        with announced(), local_executor(self.n_jobs) as executor:
            draft = Draft(
                model,
                wants,
                observed,
                priors,
                given,
                weights,
                executor,
                self._variational,
                self._auto_rates(model),
            )
            if self._newton:
                draft = draft.with_rows(arrays)
            levels, point, interrupted, found = self._find_levels(draft, runner, random)
            problem = draft.problem(levels)
            fitted = Fitted(
                model, wants, problem.model.tensors, None, levels, draft.known(levels)[1], labels
            )
            finish = partial(self._finish, problem, fitted, arrays, executor)
            begin = partial(self._begin, problem, draft.starts(levels), point, random)
            n_init = self._n_starts() if point is None else 1
            stopping = Stopping(0 if interrupted else self.max_iter, self.tol)
            results, last = self._runs(problem, begin, finish, n_init, stopping, runner)
            best = Best(results[0], last, np.full(1, np.nan), 1)
            if interrupted:
                ended = best.result._replace(reason="interrupted")
                best = best._replace(result=ended, last=ended)
            self._end(best)
            self._publish(problem, fitted._replace(state=best.result.state), best)
            ends = [fitted._replace(state=one.state).means(self._variational) for one in results]
            self.component_stability_ = stability(model, found or ends)

    def _check_priors(self, model: Blueprint, signed: tuple[str, ...]) -> dict[str, PriorValues]:
        free = {name for name, role in model.network.roles.items() if role.is_free}
        return check_priors(
            model.plan,
            model.sizes,
            signed,
            {name: getattr(self, name) for name in PRIORS},
            free,
            _RATE,
            positive_rate=self._variational,
        )

    def _auto_rates(self, model: Blueprint) -> frozenset[str]:
        """Factors whose rate is to be found."""
        rates = self.activation_rate_prior
        own = rates if isinstance(rates, Mapping) else dict.fromkeys(model.plan.factors, rates)
        return frozenset(
            name for name in model.plan.factors if check.is_auto(own.get(name, "auto"))
        )

    def _find_levels(self, draft: Draft, runner: Runner, random: RandomState) -> Found:
        """Unit, dispersion and noise of each tensor; and a start, if noise was sought."""
        if any(want.letter is not None for want in draft.wants.values()):
            return find_noise(draft, self._n_starts(_STARTS_WITH_NOISE), runner, random)
        levels = {
            name: without_noise(want, draft.observed[name].data, priors_speak=draft.priors_speak)
            for name, want in draft.wants.items()
        }
        return Found(levels, None, False, [])

    def _n_starts(self, automatic: int = 1) -> int:
        return automatic if check.is_auto(self.n_init) else int(self.n_init)

    def _runs(
        self,
        problem: TensorProblem,
        begin: Callable[[], Any],
        finish: Callable[[Result], Result],
        n_init: int,
        stopping: Stopping,
        runner: Runner,
    ) -> tuple[list[Result], Result]:
        """The runs from all starts, the best one first; and the last one."""
        algorithm = self._loop_algorithm(problem)
        results: list[Result] = []
        while len(results) < n_init and not (results and results[-1].interrupted):
            result = runner.run(algorithm, problem, begin, self._description, stopping)
            results.append(finish(result) if result.converged else result)
        last = results[-1]
        return sorted(results, key=lambda result: result.objectives[-1], reverse=True), last

    def _begin(
        self,
        problem: TensorProblem,
        given: Mapping[int, NDArray],
        point: Any,
        random: RandomState,
    ) -> Any:
        """The point that a run starts from: where noise was found, or a random one."""
        arrays = start(problem, given, random) if point is None else list(point)
        return point_of(self._first(problem, arrays))

    def _finish(
        self,
        problem: TensorProblem,
        fitted: Fitted,
        arrays: Mapping[str, Any],
        executor: Any,
        result: Result,
    ) -> Result:
        """Solve for the samples' factors, so that they are those that `transform` would return."""
        fitted = fitted._replace(state=result.state)
        if not can_solve(fitted) or is_large(fitted.model, sample_factors(fitted.model.plan)):
            return result
        state = solved(fitted, arrays, executor, variational=self._variational).fitted.state
        return result.ending_with(state, self._algorithm.evaluate(problem, state))

    def _publish(self, problem: TensorProblem, fitted: Fitted, best: Best) -> None:
        """Set the fitted attributes."""
        means = fitted.means(self._variational)
        self._fitted = fitted = fitted._replace(levels=with_dispersion(problem, fitted, means))
        # −D is in the unit of X, as X is.
        only = next(iter(fitted.levels.values()))
        scale = only.unit if len(fitted.levels) == 1 and _is_limit(fitted) else 1.0
        values, last = self._trace
        setattr(self, values, scale * np.array(best.result.objectives))
        setattr(self, last, scale * best.result.objectives[-1])
        self.n_iter_ = best.result.n_iter
        self.converged_ = best.result.converged
        self.stop_reason_ = best.result.reason
        self.r2_ = explained(problem.tables, means)
        self.r2_drop_ = drops(fitted.model, problem.tables, means)


def _is_limit(fitted: Fitted) -> bool:
    """Whether all tensors are those of a dispersion of 0."""
    return all(want.kind is Real for want in fitted.wants.values())


class _Sources(NamedTuple):
    """Arrays that tell the data of a fit from others."""

    arrays: dict[str, Any]

    def parts(self) -> Iterator[NDArray]:
        """All of them."""
        for array in self.arrays.values():
            yield from (array,) if isinstance(array, np.ndarray) else array.parts()


def _least(arrays: Mapping[str, Any]) -> float:
    """The smallest number of all tensors."""
    parts = (part for array in arrays.values() for part in blocks_of(array))
    return min(float(np.fmin.reduce(part, axis=None, initial=0.0)) for part in parts)


def _check_signs(
    plan: Plan,
    signed: tuple[str, ...],
    wants: Mapping[str, Wanted],
    arrays: Mapping[str, Any],
) -> None:
    """Refuse numbers below 0 in a tensor that has neither a sign, a difference nor noise."""
    for observation in plan.observations:
        name = observation.name
        names = {use.factor for term in observation.terms for use in term.uses}
        negative = any(term.subtracted for term in observation.terms) or names & set(signed)
        noisy = wants[name].kind is Dispersed and wants[name].letter is not None
        least = _least({name: arrays[name]})
        if least < 0 and not negative and not noisy:
            raise ValueError(
                f"signed must name a factor of each tensor below 0 that has no noise of its own; "
                f"found none for {name!r}, whose smallest value is {least:g}."
            )


def _check_weights(model: Blueprint, sample_weight: Any) -> NDArray:
    """Weights of the samples, one each."""
    n_samples = model.sizes[model.plan.sample]
    if sample_weight is None:
        return np.ones(n_samples)
    weights = check.as_numbers("sample_weight", sample_weight, "a number for each sample")
    if weights.shape != (n_samples,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(
            f"sample_weight must be {n_samples} numbers of at least 0; found an array of shape "
            f"{weights.shape} from {np.min(weights, initial=np.inf):g}."
        )
    if not np.any(weights > 0):
        raise ValueError("sample_weight must be above 0 for some sample; found zeros only.")
    for name, axes in model.plan.factors.items():
        has_samples = any(axis.letter == model.plan.sample for axis in axes)
        if has_samples and model.layout(name).sample is None:
            raise ValueError(
                "sample_weight must be None unless the letter of the samples, "
                f"'{model.plan.sample}', is in free factors only; found weights, and '{name}'."
            )
    for observation in model.plan.observations:
        if model.plan.sample in observation.output[1:]:
            raise ValueError(
                f"sample_weight must be None where '{model.plan.sample}' is not the first letter "
                f"of each tensor that has it; found weights, and '{observation.name}'."
            )
    return weights


def _check_observed(observed: Mapping[str, Observed]) -> None:
    for name, own in observed.items():
        if own.data.summary.n_observed == 0:
            raise ValueError(
                f"X must have at least one observed cell; found gaps (NaN) only in {name!r}."
            )
