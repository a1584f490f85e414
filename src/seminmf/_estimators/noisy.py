"""An estimator with a component for noise: its parameters, what is found of it, what it leaves."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._algorithms.problem import Problem
from .._data.source import Data
from .._data.summary import Accepted
from .._model.likelihoods import LIKELIHOODS, Dispersed, Real
from .._model.model import LengthPrice, Model, Priors
from .._numerics.compiled import announced
from . import validation as check
from .batches import BatchSkellamSNMF
from .build import choose_unit, find_dispersion, open_problem
from .noise import FIRST_PRICE, Findings, Given, NoiseLevels, NoiseOptions, find_noise
from .notices import warn_user
from .runs import Runner

NOISES = ("auto", "feature", "same", None)
# Starts, where noise is sought: each costs little, and one in some ends in another optimum.
_STARTS_WITH_NOISE = 5
# How many dispersions a number may be large: its powers are in the range of its type.
_LARGEST_FLOAT32, _LARGEST_FLOAT64 = 1e12, 1e90
# The rate of activations where nothing is known of noise: the paper's.
_RATE_WITHOUT_NOISE = 1e-3


class NoisySkellamSNMF(BatchSkellamSNMF):
    """Base of an estimator whose model has noise; not for direct use.

    It has the parameters `dispersion`, `noise`, `positive_components` and `fit_intercept`, and
    fitted `noise_`, `intercept_` and `dispersion_`.
    """

    _private_state = (*BatchSkellamSNMF._private_state, "_price", "_noise_scale")
    _kept_parameters = (*BatchSkellamSNMF._kept_parameters, "dispersion", "positive_components")

    # --- parameters -------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_choice("noise", self.noise, NOISES)
        check.check_flag("positive_components", self.positive_components)
        check.check_flag("fit_intercept", self.fit_intercept)
        known = LIKELIHOODS[self.likelihood].known_dispersion
        check.check_dispersion(self.dispersion, known, self.likelihood)

    def _check_starts_number(self) -> None:
        if not (isinstance(self.n_init, str) and self.n_init == "auto"):
            super()._check_starts_number()

    def _likelihood(self) -> Any:
        """The class of the likelihood: real numbers of a finite dispersion have their own."""
        kind = super()._likelihood()
        finite = self._parameter("dispersion") != 0.0
        return Dispersed if finite and kind.known_dispersion is None else kind

    def _accepted_values(self) -> Accepted:
        """Which numbers X may have: in units of a dispersion that is known, squares are numbers."""
        accepted = super()._accepted_values()
        if self._likelihood() is not Dispersed or not hasattr(self, "atoms_"):
            return accepted
        single = self.atoms_.dtype == np.float32
        largest = self.dispersion_ * (_LARGEST_FLOAT32 if single else _LARGEST_FLOAT64)
        return Accepted(False, largest, f"a model with a dispersion of {self.dispersion_:g}")

    def _noise_kind(self, data: Data) -> str | None:
        """What `noise` means: "feature", "same" or None."""
        if self.noise != "auto":
            return self.noise
        known = data.cell_noise is not None or self._likelihood() is not Dispersed
        return None if known else "feature"

    def _has_noise(self, data: Data) -> bool:
        """Whether there is noise besides that of the components."""
        return data.cell_noise is not None or self._noise_kind(data) is not None

    def _check_noise(self, data: Data) -> None:
        """Refuse noise where the model has none, and what needs noise where there is none."""
        summary, noisy = data.summary, self._has_noise(data)
        kind = f"likelihood={self.likelihood!r} with dispersion={self.dispersion!r}"
        if self.noise not in ("auto", None) and self._likelihood() is not Dispersed:
            raise ValueError(f"noise must be 'auto' or None for {kind}; found {self.noise!r}.")
        if self.fit_intercept and not noisy:
            raise ValueError(
                f"fit_intercept must be False for a model without noise ({kind}, "
                f"noise={self.noise!r}); found True."
            )
        if self.fit_intercept and np.any(summary.column_count == 0):
            feature = int(np.flatnonzero(summary.column_count == 0)[0])
            raise ValueError(
                "fit_intercept must be False where a feature has no observed cell; found True, "
                f"and only gaps in feature {feature}."
            )
        if self.positive_components and not noisy and summary.least < 0:
            raise ValueError(
                "positive_components must be False for data below 0 in a model without noise "
                f"({kind}); found True, and a smallest value of {summary.least:g}."
            )

    def _check_signs(self, atoms: NDArray) -> None:
        """Refuse start values of a sign that components are not to have."""
        if self.positive_components and np.nansum(atoms[1]) > 0:
            raise ValueError(
                "atoms must have no negative part with positive_components=True; found one."
            )

    def _check_priors(self, n_samples: int, n_features: int) -> Priors:
        """The priors; a rate that is found with the noise is a small number until then."""
        rate = _RATE_WITHOUT_NOISE if self._finds_rate() else None
        return check.check_priors(
            self, n_samples, n_features, positive_rate=self._needs_rate, rate=rate
        )

    def _finds_rate(self) -> bool:
        rate = self.activation_rate_prior
        return isinstance(rate, str) and rate == "auto"

    def _n_starts(self, data: Data) -> int:
        """How many starts there are."""
        if self.n_init != "auto":
            return int(self.n_init)
        return _STARTS_WITH_NOISE if self._has_noise(data) else 1

    # --- the fit ----------------------------------------------------------------------------

    def _find_noise(
        self, data: Data, priors: Priors, given: Given, runner: Runner, random: RandomState
    ) -> Findings | None:
        """Find out about noise, dispersion and unit; returns a start, if the model has noise."""
        self._price, self._noise_scale = float("nan"), np.zeros(data.shape[1])
        if not self._has_noise(data):
            self._choose_scale(data, priors, runner)
            return None
        options = NoiseOptions(
            dispersion=None if self.dispersion == "auto" else float(self.dispersion),
            noise=self._noise_kind(data),
            intercept=self.fit_intercept,
            positive=self.positive_components,
            price=None if self._finds_rate() else FIRST_PRICE,
        )
        with announced():
            found = find_noise(
                data, options, given, self.init, self._n_starts(data), runner, random
            )
        if self._finds_rate():
            self._price = found.price
        self._noise_scale = found.scale
        self._set_levels(found.levels)
        if found.undecided:
            warn_user(
                f"{self.n_components} components have as many parameters as there are observed "
                f"cells ({data.summary.n_observed}): what is noise and what is not was guessed. "
                "Fewer components or more samples would tell."
            )
        return found

    def _set_levels(self, levels: NoiseLevels) -> None:
        self.dispersion_, self.noise_, self.intercept_ = levels
        self._unit = levels.dispersion

    def _choose_scale(self, data: Data, priors: Priors, runner: Runner) -> None:
        """Fix the dispersion and the unit of computations of a model without noise."""
        nothing = np.zeros(data.shape[1])
        if self._likelihood() is not Dispersed:
            self.noise_, self.intercept_ = nothing, nothing.copy()
            self._choose_unit(data, 1.0 if self._priors_speak(priors) else None)
            return
        dispersion = self.dispersion
        if dispersion == "auto":
            first = Real(choose_unit(Real, data), 1.0)
            dispersion, _ = find_dispersion(first, data, self.n_components, self.n_jobs, runner)
        self._set_levels(NoiseLevels(float(dispersion), nothing, nothing.copy()))

    def _model(
        self, data: Data, priors: Priors, dispersion: float, frozen: NDArray | None = None
    ) -> Model:
        """The model, with its noise."""
        model = super()._model(data, priors, dispersion, frozen)
        model = model._replace(one_signed=self._parameter("positive_components"))
        if self._likelihood() is not Dispersed:
            return model
        # Cells of which nothing is known have the noise that those of the fit had.
        noise = self._noise_scale if data.cell_noise is None else self.noise_
        levels = NoiseLevels(self.dispersion_, noise, self.intercept_)
        return model._replace(background=levels.background(data.cell_noise))

    def _problem_to_fit(
        self, data: Data, priors: Priors, frozen: NDArray | None = None
    ) -> AbstractContextManager[Problem]:
        """The problem of a fit, with the price of activations that was found."""
        model = self._model(data, priors, self._prior_scale(), frozen)
        if np.isfinite(self._price):
            price = LengthPrice(self._price, self._noise_scale / self._unit)
            if priors.activations.is_exponential and priors.atoms.is_flat:
                model = model._replace(length_price=price)
            else:
                # Where other shapes count, lengths are priced as those of the noise itself.
                rate = np.full((1, 1), price.typical_rate())
                prior = priors.activations._replace(rate=rate)
                model = model.with_priors(priors._replace(activations=prior))
        return open_problem(model, data, self.n_jobs)

    def _publish_noise(self, problem: Problem) -> None:
        """Set what the model has besides its factors."""
        self._priors = problem.model.at(self.atoms_).priors
        if self._likelihood() is Dispersed:
            self.dispersion_ = problem.model.likelihood.dispersion

    def _prior_scale(self) -> float:
        return self.dispersion_ if self._likelihood() is Dispersed else 1.0

    @property
    def activation_rate_prior_(self) -> NDArray:
        """The rate of the activations' prior that was used."""
        rate = self._priors.activations.rate
        rate = np.broadcast_to(rate, (len(rate), self._n_features_out))
        return rate[0].copy() if len(rate) == 1 else rate.copy()
