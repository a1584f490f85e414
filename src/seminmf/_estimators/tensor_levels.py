"""Unit, dispersion and noise of each observed tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._model.language import Observation, Plan
from .._model.likelihoods import LIKELIHOODS, Dispersed
from . import validation as check
from .build import choose_unit
from .tensor_build import Blueprint, NoiseOf

# What the noise of a whole tensor is called, in the place of a letter.
SAME = "same"


class Levels(NamedTuple):
    """What an observed tensor has besides its factors, in the unit of X.

    Attributes
    ----------
    unit : float
        Factors inside are in units of this.
    dispersion : float
    letter : str
        The letter whose values have their own noise, or "same".
    noise : array
        Its standard deviation for each of them; empty if there is none.
    """

    unit: float
    dispersion: float
    letter: str
    noise: NDArray

    @property
    def rates(self) -> NoiseOf | None:
        """The noise as rates of both signs, in units of computations."""
        if not self.noise.size:
            return None
        return NoiseOf(self.letter, (self.noise / self.unit) ** 2 / 2)


class Wanted(NamedTuple):
    """What is asked for of one observed tensor.

    Attributes
    ----------
    kind : class of Likelihood
    dispersion : float or None
        None if it is to be found.
    letter : str or None
        Whose values have their own noise; None if there is no noise.
    """

    kind: Any
    dispersion: float | None
    letter: str | None


def wanted(plan: Plan, likelihood: Any, dispersion: Any, noise: Any) -> dict[str, Wanted]:
    """What is asked for of each tensor, checked; all arguments may be dicts by their names."""
    found = {}
    for argument, value in (
        ("likelihood", likelihood),
        ("dispersion", dispersion),
        ("noise", noise),
    ):
        names = [observation.name for observation in plan.observations]
        for name in value if isinstance(value, Mapping) else ():
            if name not in names:
                shown = ", ".join(map(repr, names))
                raise ValueError(
                    f"{argument} must have names of tensors ({shown}); found {name!r}."
                )
    for observation in plan.observations:
        name = observation.name
        own = _of_table(likelihood, name, "real")
        check.check_choice("likelihood", own, tuple(LIKELIHOODS))
        found[name] = _wanted_one(
            observation,
            own,
            _of_table(dispersion, name, "auto"),
            _of_table(noise, name, "auto"),
        )
    return found


def _of_table(value: Any, name: str, default: Any) -> Any:
    return value.get(name, default) if isinstance(value, Mapping) else value


def _wanted_one(observation: Observation, likelihood: str, dispersion: Any, noise: Any) -> Wanted:
    kind = LIKELIHOODS[likelihood]
    check.check_dispersion(dispersion, kind.known_dispersion, likelihood)
    if kind.known_dispersion is None and dispersion != 0.0:
        kind = Dispersed
    letters = observation.output[1:]
    accepted = ("auto", SAME, None, *letters)
    check.check_choice("noise", noise, accepted)
    if kind is not Dispersed:
        if noise not in ("auto", None):
            raise ValueError(
                f"noise must be 'auto' or None for likelihood={likelihood!r} with "
                f"dispersion={dispersion!r}; found {noise!r}."
            )
        return Wanted(kind, kind.known_dispersion or 0.0, None)
    if noise is None and dispersion == "auto":
        raise ValueError(
            "noise must be 'auto', 'same' or a letter where dispersion is 'auto'; found None, with "
            "which dispersion must be a number (0.0 is the paper's)."
        )
    letter = noise
    if noise == "auto":
        letter = letters[0] if letters else SAME
    return Wanted(kind, None if dispersion == "auto" else float(dispersion), letter)


def without_noise(want: Wanted, data: Any, *, priors_speak: bool) -> Levels:
    """The levels of a tensor whose dispersion is known, and that has no noise beside it."""
    nothing = np.empty(0)
    if want.kind is Dispersed:
        assert want.dispersion is not None
        return Levels(want.dispersion, want.dispersion, SAME, nothing)
    # Priors that speak of sizes speak in the unit of X.
    unit = 1.0 if priors_speak else choose_unit(want.kind, data)
    return Levels(unit, 1.0, SAME, nothing)


def unit_of(model: Blueprint, name: str, levels: Mapping[str, Levels]) -> float:
    """The unit of a factor: that of the first tensor where it is the unit, and else 1."""
    for observation in model.plan.observations:
        for term in model.terms_of(observation):
            if model.network.units[term] == name:
                return levels[observation.name].unit
    return 1.0
