"""An estimator with a component for noise: its parameters, what is found of it, what it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils.validation import check_random_state

from .._algorithms.em import Factors
from .._algorithms.loop import UNRECORDED
from .._algorithms.problem import Problem
from .._data.source import Data
from .._data.summary import Accepted
from .._model.likelihoods import LIKELIHOODS, Dispersed, Real, takes_integers
from .._model.model import NO_BACKGROUND, Background, LengthPrice, Model, Priors
from .._model.priors import normalise
from .._numerics.compiled import announced
from . import validation as check
from .batches import BatchSkellamSNMF
from .build import choose_unit, find_dispersion, open_problem
from .files import ArrayField
from .noise import Findings, Given, NoiseLevels, NoiseOptions, find_noise
from .notices import warn_user
from .price import FIRST_PRICE
from .runs import Runner

NOISES = ("auto", "feature", "same", None)
# Starts, where noise is sought: each costs little, and one in some ends in another optimum.
_STARTS_WITH_NOISE = 10
# How many dispersions a number may be large: its powers are in the range of its type.
_LARGEST_FLOAT32, _LARGEST_FLOAT64 = 1e12, 1e90
# The rate of activations where nothing is known of noise: the paper's.
_RATE_WITHOUT_NOISE = 1e-3
# Share of an atom that is spread over all entries of both signs, where a start has zeros that EM
# cannot leave, or that a prior excludes.
_SPREAD = 1e-3
# What a file holds of noise.
NOISE_SCALARS = {"_price": float, "_r2_of_same_noise": float}
NOISE_ARRAYS = {
    "noise_": ArrayField("I", of_data=False, default=0.0, attribute="_noise_of_fit"),
    "_noise_scale": ArrayField("I", of_data=False, default=0.0),
    "intercept_": ArrayField(
        "I", sign="any", of_data=False, default=0.0, attribute="_intercept_of_fit"
    ),
    "_feature_sizes": ArrayField("I", of_data=False, default=0.0),
}


def before_dispersion(given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a file from when real data had no dispersion."""
    missing = {} if takes_integers(given.get("likelihood")) else {"dispersion": 0.0}
    return missing | given


class NoisySkellamSNMF(BatchSkellamSNMF):
    """Base of an estimator whose model has noise; not for direct use.

    It has the parameters `dispersion`, `noise`, `positive_components` and `fit_intercept`, and
    fitted `noise_`, `intercept_` and `dispersion_`. While it is fitted, `_found` has what the
    search for noise found, or None, and `_search_interrupted` whether Ctrl-C ended it.
    """

    _found: Findings | None = None
    # The price of activations of a fit that this one repeats.
    _known_price: float | None = None
    _search_interrupted = False
    # What a component may add to the variance of a cell by the dispersion, against the noise.
    _dispersion_share: float
    # Parameters of priors that may be "auto", and what they are before anything is known.
    _first_priors: Mapping[str, float] = MappingProxyType(
        {"activation_rate_prior": _RATE_WITHOUT_NOISE}
    )

    _private_state = (
        *BatchSkellamSNMF._private_state,
        "_price",
        "_noise_of_fit",
        "_intercept_of_fit",
        "_noise_scale",
        "_feature_sizes",
        "_r2_of_same_noise",
    )
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

    def _check_plain(self, what: str, *others: str) -> None:
        """Refuse what some uses of the model cannot do: `what` says which."""
        for name in ("positive_components", "fit_intercept", *others):
            if getattr(self, name):
                raise ValueError(f"{name} must be False for {what}; found True.")
        if self.noise not in ("auto", None):
            raise ValueError(f"noise must be 'auto' or None for {what}; found {self.noise!r}.")

    def _check_signs(self, atoms: NDArray) -> None:
        """Refuse start values of a sign that components are not to have."""
        if self.positive_components and np.nansum(atoms[1]) > 0:
            raise ValueError(
                "atoms must have no negative part with positive_components=True; found one."
            )

    def _check_priors(self, n_samples: int, n_features: int) -> Priors:
        """The priors; a rate that is found with the noise is a small number until then."""
        return check.check_priors(
            self,
            n_samples,
            n_features,
            positive_rate=self._needs_rate,
            auto=self._first_priors,
        )

    def _finds_rate(self) -> bool:
        return check.is_auto(self.activation_rate_prior)

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
        self._price = self._r2_of_same_noise = float("nan")
        self._noise_scale, self._feature_sizes = np.zeros((2, data.shape[1]))
        if not self._has_noise(data):
            self._search_interrupted = self._choose_scale(data, priors, runner)
            return None
        options = NoiseOptions(
            dispersion=None if self.dispersion == "auto" else float(self.dispersion),
            noise=self._noise_kind(data),
            intercept=self.fit_intercept,
            positive=self.positive_components,
            price=self._known_price if self._finds_rate() else FIRST_PRICE,
            dispersion_share=self._dispersion_share,
        )
        with announced():
            found = find_noise(
                data, options, given, self.init, self._n_starts(data), runner, random
            )
        self._search_interrupted = found.interrupted
        self._r2_of_same_noise = found.r2_of_same_noise
        if self._finds_rate():
            self._price = found.price
        self._noise_scale, self._feature_sizes = found.scale, found.sizes
        self._set_levels(found.levels)
        if found.undecided:
            warn_user(
                f"{self.n_components} components have as many parameters as there are observed "
                f"cells ({data.summary.n_observed}): what is noise and what is not was guessed. "
                "Fewer components or more samples would tell."
            )
        if found.outlier is not None:
            sample, feature = found.outlier
            warn_user(
                f"The cell of sample {sample} and feature {feature} is out of all proportion "
                "to the others of its feature, which is taken for noise. If it is wrong, set it to "
                "NaN."
            )
        return found

    def _set_levels(self, levels: NoiseLevels) -> None:
        self.dispersion_, self._noise_of_fit, self._intercept_of_fit = levels
        self._unit = levels.dispersion

    def _choose_scale(self, data: Data, priors: Priors, runner: Runner) -> bool:
        """Fix the dispersion and the unit of a model without noise; whether Ctrl-C came."""
        nothing = np.zeros(data.shape[1])
        if self._likelihood() is not Dispersed:
            self._noise_of_fit, self._intercept_of_fit = nothing, nothing.copy()
            self.dispersion_ = 1.0
            self._choose_unit(data, 1.0 if self._priors_speak(priors) else None)
            return False
        dispersion, interrupted = self.dispersion, False
        if dispersion == "auto":
            first = Real(choose_unit(Real, data), 1.0)
            dispersion, interrupted = find_dispersion(
                first, data, self.n_components, self.n_jobs, runner
            )
        self._set_levels(NoiseLevels(float(dispersion), nothing, nothing.copy()))
        return interrupted

    def _priors_speak(self, priors: Priors) -> bool:
        """Whether the priors say how large activations are, or atoms."""
        return True

    def _begin(self, data: Data, priors: Priors) -> None:
        """Decide on what the first batch decides."""
        self._check_noise(data)
        free = np.zeros(self.n_components, dtype=bool)
        runner = Runner(UNRECORDED, bool(self.verbose))
        random = check_random_state(self.random_state)
        self._found = self._find_noise(data, priors, Given(None, None, free), runner, random)
        if self._search_interrupted:
            raise KeyboardInterrupt

    def _first_atoms(
        self, problem: Problem, found: Findings, atoms: NDArray | None = None, spread: bool = True
    ) -> NDArray:
        """The atoms that were found with the noise; frozen ones as they were given.

        `spread` leaves no zeros.
        """
        first = found.atoms.copy()
        if spread:
            first = (1 - _SPREAD) * first + _SPREAD * first.mean(axis=(0, 2), keepdims=True)
            first[1] *= not self.positive_components
        if atoms is not None:
            frozen = problem.model.atoms.frozen
            first[:, frozen] = atoms[:, frozen]
        return normalise(first).astype(problem.dtype)

    def _with_signs(self, state: Factors) -> Factors:
        """The state without the sign that components are not to have."""
        if not self.positive_components:
            return state
        one_signed = state.atoms * np.array([1, 0])[:, None, None]
        return state._replace(atoms=normalise(one_signed).astype(state.atoms.dtype))

    def _model(
        self, data: Data, priors: Priors, dispersion: float, frozen: NDArray | None = None
    ) -> Model:
        """The model, with the signs of its components."""
        model = super()._model(data, priors, dispersion, frozen)
        return model._replace(one_signed=self._parameter("positive_components"))

    def _background(self, data: Data) -> Background:
        """Noise and intercept."""
        if self._likelihood() is not Dispersed:
            return NO_BACKGROUND
        # Cells of which nothing is known have the noise that those of the fit had.
        noise = self._noise_scale if data.cell_noise is None else self._noise_of_fit
        levels = NoiseLevels(self.dispersion_, noise, self._intercept_of_fit)
        return levels.background(data.cell_noise)

    def _problem_to_fit(
        self, data: Data, priors: Priors, frozen: NDArray | None = None
    ) -> AbstractContextManager[Problem]:
        """The problem of a fit, with the price of activations that was found."""
        model = self._priced(self._model(data, priors, self._prior_scale(), frozen))
        return open_problem(model, data, self.n_jobs)

    def _priced(self, model: Model) -> Model:
        """The model with the price of activations that was found, if one was."""
        if not np.isfinite(self._price):
            return model
        price, priors = LengthPrice(self._price, self._noise_scale / self._unit), model.priors
        if priors.activations.is_exponential and priors.atoms.is_flat:
            return model._replace(length_price=price)
        # Where other shapes count, lengths are priced as those of the noise itself.
        prior = priors.activations._replace(rate=np.full((1, 1), price.typical_rate()))
        return model.with_priors(priors._replace(activations=prior))

    def _publish_noise(self, problem: Problem) -> None:
        """Set what the model has besides its factors."""
        self._priors = problem.model.at(self.atoms_).priors
        if self._likelihood() is Dispersed:
            self.dispersion_ = problem.model.likelihood.dispersion

    @property
    def noise_(self) -> NDArray:
        """Standard deviation (I,) of each feature's noise, in the unit of X."""
        return self._in_unit_of_X(self._noise_of_fit)

    @property
    def intercept_(self) -> NDArray:
        """What is added to activations · components (I,), in the unit of X."""
        return self._in_unit_of_X(self._intercept_of_fit)

    def _prior_scale(self) -> float:
        return self.dispersion_ if self._likelihood() is Dispersed else 1.0

    @property
    def activation_rate_prior_(self) -> NDArray:
        """The rate of the activations' prior that was used."""
        return self._by_component(self._priors.activations.rate)

    def _by_component(self, parameter: NDArray) -> NDArray:
        """A parameter of the activations' prior, without an axis of samples if they share it."""
        parameter = np.broadcast_to(parameter, (len(parameter), self._n_features_out))
        return parameter[0].copy() if len(parameter) == 1 else parameter.copy()
