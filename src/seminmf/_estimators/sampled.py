"""Posteriors by draws: a chain is run for what all samples share, and samples follow from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from .._algorithms import gibbs, gibbs_counts, vb
from .._algorithms.draws import Draws, drawn_activations, from_chain, from_counts, means_of_samples
from .._algorithms.gibbs import SampledModel, Sampling, Schedule
from .._algorithms.gibbs_counts import CountSampling
from .._algorithms.loop import Result, Stopping
from .._algorithms.prior_draws import GammaPrior
from .._algorithms.problem import Problem
from .._data.source import Data
from .._model.priors import Gamma
from .._numerics.compiled import announced
from .._numerics.scaling import power_of_two
from . import validation as check
from .files import ArrayField
from .noisy import NoisySkellamSNMF
from .notices import warn_user
from .posterior import PosteriorSkellamSNMF
from .posteriors import Correlated, MeanField
from .runs import Runner

POSTERIORS = ("auto", "correlated", "mean-field")
# A chain has so many multiplications at the most, but at least so many sweeps; and at most so many.
_MOST_WORK, _FEWEST_SWEEPS, _MOST_SWEEPS = 3e10, 300, 2500
# A share of them comes before the first draw.
_SHARE_BEFORE = 0.2
# Draws that are kept: as many numbers as this, within limits.
_KEPT_NUMBERS, _FEWEST_DRAWS, _MOST_DRAWS = 1 << 23, 50, 200
# If the fewest draws have more numbers than this, there are none.
_MOST_NUMBERS = 1 << 27
# The same for integers: work in nanoseconds, of a cell and of each component in it. Beyond the
# largest count, draws of counts take too long.
_MOST_WORK_OF_COUNTS, _WORK_OF_CELL, _LARGEST_COUNT = 5e9, (100, 60), 1e7
# Scans of a sample's activations in a sweep.
_SCANS = 2
# How far the halves of a chain may be apart, as the ratio of standard deviations with and without
# the difference of their means, for the chain to have settled.
_SETTLED = 1.2

# What a file holds of draws; S is their number, which is 0 for a mean field.
DRAW_ARRAYS = {
    "_atom_draws": ArrayField("S2KI", default=0.0),
    "_activation_draws": ArrayField("SJK", default=0.0),
    "_intercept_draws": ArrayField("SI", sign="any", of_data=False, default=0.0),
    "_noise_draws": ArrayField("SI", of_data=False, default=0.0),
    "_shape_draws": ArrayField("SK", of_data=False, default=0.0),
    "_rate_draws": ArrayField("SK", of_data=False, default=0.0),
    "_typical_signal": ArrayField("I", of_data=False, default=1.0),
}
# Share of the noise that grows with the signal.
DRAW_SCALARS = {"_growing_noise": float}


class SampledSkellamSNMF(PosteriorSkellamSNMF, NoisySkellamSNMF):
    """Base of an estimator whose posterior may be draws; not for direct use.

    It has the parameter `posterior` and, fitted, `posterior_`.
    """

    posterior: str
    _private_state = (*NoisySkellamSNMF._private_state, *DRAW_ARRAYS, *DRAW_SCALARS)
    _first_priors = MappingProxyType(
        {
            **NoisySkellamSNMF._first_priors,
            "activation_shape_prior": 1.0,
            "atom_shape_prior": 1.0,
        }
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_choice("posterior", self.posterior, POSTERIORS)

    def _is_sampled(self, data: Data) -> bool:
        """Whether the posterior is sampled; refuses to, if it is asked for and cannot be had."""
        if self.posterior == "mean-field":
            return False
        obstacle = self._obstacle(data)
        if obstacle and self.posterior == "correlated":
            raise ValueError(
                f"posterior must be 'auto' or 'mean-field' {obstacle}; found 'correlated'."
            )
        return not obstacle

    def _obstacle(self, data: Data) -> str:
        """What stands in the way of draws from the joint posterior; nothing if they can be had."""
        integers = self._likelihood().integers
        if not integers and not self._has_noise(data):
            return "for real numbers in a model without a component for noise"
        if integers and not self.check_integer:
            return "with check_integer=False"
        if integers and data.summary.largest > _LARGEST_COUNT:
            return f"for integers above {_LARGEST_COUNT:g}"
        if self.batch_size is not None:
            return "with batch_size"
        if not data.source.in_memory or data.source.stores_cells:
            return "for data that are sparse, or not in memory"
        if _FEWEST_DRAWS * data.shape[0] * self.n_components > _MOST_NUMBERS:
            return f"for {data.shape[0]} samples and {self.n_components} components"
        atoms = self.atom_shape_prior
        flat = np.ndim(atoms) == 0 and (check.is_auto(atoms) or atoms == 1.0)
        if not integers and not flat:
            return "with an atom_shape_prior other than 1"
        for name in ("activation_shape_prior", "activation_rate_prior"):
            if np.ndim(getattr(self, name)) > 1:
                return f"with an {name} for each sample"
        return ""

    # --- the fit ----------------------------------------------------------------------------

    def _run_chain(
        self, problem: Problem, data: Data, frozen: NDArray, runner: Runner, random: RandomState
    ) -> tuple[Result[gibbs.Chain], Draws]:
        """Sample from where the search for noise ended."""
        found = self._found
        assert found is not None
        sampling = self._sampling(problem, data, frozen)
        variance = (self._noise_scale / sampling.unit) ** 2
        if sampling.known.size > 0:
            variance = (self._noise_of_fit / sampling.unit) ** 2
        components = found.atoms[0] - found.atoms[1]
        intercept, seed = self._intercept_of_fit / sampling.unit, int(random.randint(2**31))
        interrupted = self._search_interrupted
        n_sweeps = 0 if interrupted else min(sampling.schedule.n_sweeps, self.max_iter)

        def begin() -> gibbs.Chain:
            return gibbs.first(sampling, components, intercept, variance, seed)

        with announced():
            result, sampling = _sampled(sampling, begin, n_sweeps, runner)
        if interrupted:
            result = result._replace(reason="interrupted")
        kept = _drawn(sampling.schedule, result)
        return result, from_chain(kept, sampling, sampling.unit / self.dispersion_)

    def _sampling(self, problem: Problem, data: Data, frozen: NDArray) -> Sampling:
        """The problem of the chain."""
        unit = power_of_two(data.summary.largest)
        known = np.empty((0, 0))
        if data.cell_noise is not None:
            known = np.broadcast_to(data.cell_noise, (len(data.cell_noise), data.shape[1]))
            known = np.ascontiguousarray((known / unit) ** 2, dtype=np.float64)
        # A feature without values has the noise that the search left it.
        scale = self._noise_scale / unit
        sizes = np.maximum(self._feature_sizes / unit, scale) ** 2
        return Sampling(
            data,
            unit,
            known,
            scale,
            sizes,
            self._sampled_model(data, frozen, unit),
            self._schedule(data),
            problem.executor,
        )

    def _sampled_model(self, data: Data, frozen: NDArray, unit: float) -> SampledModel:
        """What is drawn, and what is given."""
        rate = self._given("activation_rate_prior")
        return SampledModel(
            frozen,
            self.fit_intercept,
            self.positive_components,
            self._noise_kind(data),
            self._given("activation_shape_prior"),
            None if rate is None else rate / self.dispersion_ * unit,
        )

    def _schedule(self, data: Data) -> Schedule:
        """How long the chain is: by what a sweep costs."""
        (n_samples, n_features), n_components = data.shape, self.n_components
        n_gapped = data.summary.n_observed < n_samples * n_features or data.cell_noise is not None
        work = n_samples * n_components * (n_features + 20) * (n_components if n_gapped else 2)
        most = _MOST_WORK
        if self._likelihood().integers:
            own, of_component = _WORK_OF_CELL
            work = n_samples * n_features * (own + of_component * n_components)
            most = _MOST_WORK_OF_COUNTS
        n_sweeps = int(np.clip(most / work, _FEWEST_SWEEPS, _MOST_SWEEPS))
        n_sweeps = min(n_sweeps, self.max_iter)
        n_numbers = n_components * (n_samples + 2 * n_features)
        n_draws = int(np.clip(_KEPT_NUMBERS // n_numbers, _FEWEST_DRAWS, _MOST_DRAWS))
        n_first = int(_SHARE_BEFORE * n_sweeps)
        n_draws = max(min(n_draws, n_sweeps - n_first), 1)
        return Schedule(n_first, n_draws, max((n_sweeps - n_first) // n_draws, 1), _SCANS)

    def _count_sampling(self, problem: Problem, data: Data, frozen: NDArray) -> CountSampling:
        """The problem of the chain for integers."""
        typical = float(data.shares(1.0, self.n_components).mean())
        shape, rate = self._given("activation_shape_prior"), self._given("activation_rate_prior")
        atom_shape = None
        if self.positive_components or not check.is_auto(self.atom_shape_prior):
            size = (2, self.n_components, data.shape[1])
            atom_shape = np.broadcast_to(problem.model.priors.atoms.shape, size)
        return CountSampling(
            data,
            frozen,
            GammaPrior(shape, rate, max(typical, 1e-3)),
            atom_shape,
            self._schedule(data),
            problem.executor,
            partial(_log_likelihood, problem),
        )

    def _run_counts(
        self,
        problem: Problem,
        data: Data,
        frozen: NDArray,
        start: vb.Posteriors,
        runner: Runner,
        random: RandomState,
    ) -> tuple[Result[gibbs_counts.CountChain], Draws]:
        """Sample from where a mean field ended."""
        sampling = self._count_sampling(problem, data, frozen)
        seed = int(random.randint(2**31))
        means = start.activation_shape / problem.model.activations.prior.posterior_rate()
        atoms = start.atom_shape / start.atom_shape.sum(axis=(0, 2), keepdims=True)
        stopping = Stopping(min(sampling.schedule.n_sweeps, self.max_iter), 0.0, of_following=True)

        def begin() -> gibbs_counts.CountChain:
            return gibbs_counts.first(sampling, means, atoms, seed)

        with announced():
            result = runner.run(gibbs_counts, sampling, begin, "Gibbs", stopping)
        return result, from_counts(_drawn(sampling.schedule, result), frozen)

    def _given(self, name: str) -> NDArray | None:
        """A parameter of the activations' prior by component; None if it is learned."""
        if check.is_auto(getattr(self, name)):
            return None
        given = np.asarray(getattr(self, name), dtype=np.float64)
        return np.broadcast_to(given, self.n_components)

    def _publish_draws(
        self, problem: Problem, data: Data, result: Result[Any], draws: Draws
    ) -> None:
        """Set the fitted attributes."""
        self._interrupted = result.interrupted
        schedule = self._schedule(data)
        self._set_draws(draws, problem.dtype)
        told = data.cell_noise is not None
        means, deviations, self._activation_draws = drawn_activations(
            problem, self._draws(), told, keep=True
        )
        dtype = problem.dtype
        self.activations_ = means.astype(dtype)
        shape = (means / deviations) ** 2
        self.activation_shape_ = shape.astype(dtype)
        with np.errstate(over="ignore"):  # of subnormal numbers
            self.activation_rate_ = np.minimum(shape / means, np.finfo(dtype).max).astype(dtype)
        self.atoms_ = draws.atoms.mean(axis=0).astype(dtype)
        self.atom_shape_ = _matched_shapes(draws.atoms).astype(dtype)
        self._intercept_of_fit = draws.intercept.mean(axis=0) * self.dispersion_
        if self._noise_kind(data) is not None and not told:
            self._noise_of_fit = draws.noise.mean(axis=0) * self.dispersion_
        self._publish_sampled_priors(problem, draws)
        self._publish_explained(problem, self.activations_)
        self.lower_bounds_ = np.array(result.objectives)
        settled = result.objectives[schedule.n_first :] or result.objectives[-1:]
        self.lower_bound_ = float(np.mean(settled))
        self.n_iter_ = result.n_iter
        self.converged_ = not result.interrupted and _is_settled(draws.components)
        reason = "tolerance" if self.converged_ else "max_iter"
        self.stop_reason_ = result.reason if result.interrupted else reason
        self._warn_of_chain()

    def _warn_of_chain(self) -> None:
        """Say so if there are not the draws that there should be."""
        if self._interrupted:
            warn_user(
                f"Interrupted after {self.n_iter_} sweeps; the draws so far are kept.",
                ConvergenceWarning,
            )
        elif not self.converged_:
            warn_user(
                f"The draws have not settled after {self.n_iter_} sweeps: the first half of them "
                "has other components than the second, and intervals may be too narrow. Fewer "
                "components would settle sooner.",
                ConvergenceWarning,
            )

    def _publish_sampled_priors(self, problem: Problem, draws: Draws) -> None:
        """Set the priors to the means of what was drawn."""
        shape = draws.shape.mean(axis=0)[None]
        rate = draws.rate.mean(axis=0)[None]
        priors = problem.model.priors
        self._priors = priors._replace(activations=Gamma(shape, rate))

    def _set_draws(self, draws: Draws, dtype: np.dtype) -> None:
        self._atom_draws = draws.atoms.astype(dtype)
        self._intercept_draws, self._noise_draws = draws.intercept, draws.noise
        self._shape_draws, self._rate_draws = draws.shape, draws.rate
        self._growing_noise, self._typical_signal = draws.growing, draws.typical

    def _draws(self) -> Draws:
        """The draws of what all samples share."""
        return Draws(
            self._atom_draws,
            self._intercept_draws,
            self._noise_draws,
            self._shape_draws,
            self._rate_draws,
            self._growing_noise,
            self._typical_signal,
        )

    def _forget_draws(self) -> None:
        """Have none, as a mean field."""
        sizes = {"S": 0, "2": 2, "J": len(self.activations_), "K": len(self.components_)}
        sizes["I"] = self.n_features_in_
        for name, field in DRAW_ARRAYS.items():
            dtype = self.atoms_.dtype if field.of_data else np.float64
            size = [sizes[axis] for axis in field.axes]
            setattr(self, name, np.full(size, field.default, dtype))
        self._growing_noise = 0.0

    # --- answers ----------------------------------------------------------------------------

    @property
    def posterior_(self) -> str:
        """Which posterior the fit has: "correlated" or "mean-field"."""
        return "correlated" if len(self._atom_draws) else "mean-field"

    @property
    def activation_shape_prior_(self) -> NDArray:
        """The shape of the activations' prior that was used, or the mean of what was learned."""
        return self._by_component(self._priors.activations.shape)

    @property
    def atom_shape_prior_(self) -> NDArray:
        """The shape of the atoms' prior that was used."""
        return np.broadcast_to(self._priors.atoms.shape, self.atoms_.shape).copy()

    def _posterior(self) -> MeanField | Correlated:
        if self.posterior_ == "mean-field":
            return super()._posterior()
        intercept = self._intercept_draws * self.dispersion_
        return Correlated(self._activation_draws, self._atom_draws, intercept)

    def _is_told(self, problem: Problem) -> bool:
        """Whether the noise of the problem's cells is known."""
        return problem.data.cell_noise is not None

    def _sampled_rows(self, problem: Problem) -> Any:
        """Posterior means of the activations of the problem's samples."""
        arguments = (self._draws(), self._is_told(problem))
        (means,), _ = problem.over_samples(means_of_samples, (), *arguments)
        return means

    def _drawn_gaps(
        self, problem: Problem, gaps: tuple[NDArray, ...], n_draws: int, random: RandomState
    ) -> tuple[NDArray, NDArray]:
        """Means of the activations, and draws (n_draws, n_gaps) of new observations in gaps."""
        if self.posterior_ == "mean-field":
            return super()._drawn_gaps(problem, gaps, n_draws, random)
        draws, told, unit = self._draws(), self._is_told(problem), self.dispersion_
        n_kept, integers = len(draws.atoms), self._likelihood().integers
        means, _, activations = drawn_activations(problem, draws, told, keep=True)
        samples, features = gaps
        observations = np.empty((n_draws, len(samples)))
        known = np.sqrt(problem.model.background.of_cells(samples, features).sum(axis=0))
        numbers = random.choice(n_kept, n_draws, replace=n_draws > n_kept)
        for draw, number in zip(observations, numbers, strict=True):
            own = activations[number, samples]
            atoms = np.moveaxis(draws.atoms[number], 1, 2)[:, features]
            rate0, rate1 = np.einsum("nk,snk->sn", own, atoms)
            if integers:
                draw[:] = problem.model.likelihood.draw(rate0, rate1, random)
                continue
            draw[:] = rate0 - rate1
            noise = known if told else draws.noise_of(number, features, (rate0 + rate1) / unit)
            other = draws.intercept[number, features] + noise * random.normal(size=len(samples))
            draw += other * self.dispersion_
        return means.astype(problem.dtype), observations


def _sampled(
    sampling: Sampling, begin: Callable[[], gibbs.Chain], n_sweeps: int, runner: Runner
) -> tuple[Result[gibbs.Chain], Sampling]:
    """Run a chain, once more from where it is if it shows before the first draw that noise grows.

    Also returns the problem that the draws are of.
    """

    def run(sampling: Sampling, begin: Callable[[], gibbs.Chain], n: int) -> Result[gibbs.Chain]:
        return runner.run(gibbs, sampling, begin, "Gibbs", Stopping(n, 0.0, of_following=True))

    n_first = min(sampling.schedule.n_first, n_sweeps)
    before = run(sampling, begin, n_first)
    if before.interrupted:
        return before, sampling
    growing = gibbs.with_growth(sampling, before.state)
    if growing.growth is not None:
        again = before.state._replace(age=0, seed=before.state.seed + 1)
        return run(growing, lambda: again, n_sweeps), growing
    result = run(sampling, lambda: before.state, n_sweeps - n_first)
    return result._replace(objectives=before.objectives + result.objectives[1:]), sampling


def _drawn(schedule: Schedule, result: Result[Any]) -> Any:
    """The draws of a chain, which Ctrl-C may have ended: one at least."""
    state = result.state
    n_drawn = (result.n_iter - schedule.n_first) // schedule.every
    if n_drawn < 1:
        for name, kept in zip(state.kept._fields, state.kept, strict=True):
            kept[0] = getattr(state, name)
    n_drawn = int(np.clip(n_drawn, 1, schedule.n_draws))
    return type(state.kept)(*(part[:n_drawn] for part in state.kept))


def _log_likelihood(problem: Problem, activations: NDArray, atoms: NDArray) -> float:
    """That of the data at some factors."""
    dtype = problem.dtype
    return problem.expectations(activations.astype(dtype), atoms.astype(dtype)).data_term


def _matched_shapes(atoms: NDArray) -> NDArray:
    """Dirichlet distributions with the means and the total variance of draws (S, 2, K, I)."""
    means, variance = atoms.mean(axis=0), atoms.var(axis=0).sum(axis=(0, 2))
    spread = (means * (1 - means)).sum(axis=(0, 2))
    total = np.clip(spread / np.maximum(variance, 1e-300) - 1, 1.0, 1e12)
    return np.maximum(means * total[:, None], 1e-30)


def _is_settled(components: NDArray) -> bool:
    """Whether the halves of a chain have the same mean components, by their spread."""
    half = len(components) // 2
    if half < 2:
        return False
    halves = components[:half], components[half : 2 * half]
    within = np.mean([part.var(axis=0) for part in halves], axis=0).sum(axis=1)
    between = ((halves[0].mean(axis=0) - halves[1].mean(axis=0)) ** 2).sum(axis=1) / 2
    return bool(np.all(between <= (_SETTLED**2 - 1) * within))
