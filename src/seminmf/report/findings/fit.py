"""What was fitted, to what, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._views.ending import solver_of
from ..subject import Subject

# Settings that have a place of their own, or change nothing in the result.
_ELSEWHERE = ("n_components", "likelihood", "random_state", "n_jobs", "verbose")


@dataclass(frozen=True)
class Fit:
    """The model and the size of its data.

    Attributes
    ----------
    estimator, likelihood, version : str
    n_components, n_samples, n_features : int
        Those of the fit.
    seed : str
    settings : dict of str
        Settings by name, where they differ from the default.
    n_given : int or None
        Samples of the data that the report got.
    dispersion : float or None
        Of real data.
    noise : pair of float or None
        The least and the most noise of a feature, if the model has noise; in the unit of the data.
    r2 : float
        R² of the data of the fit; NaN if the file of the model is too old to tell.
    scaled : bool
        Whether the features were divided by a scale.
    solver : str or None
        The solver that was used, in words.
    """

    estimator: str
    likelihood: str
    version: str
    n_components: int
    n_samples: int
    n_features: int
    seed: str
    settings: dict[str, str]
    n_given: int | None
    dispersion: float | None
    noise: tuple[float, float] | None
    r2: float
    scaled: bool
    solver: str | None

    @classmethod
    def of(cls, subject: Subject) -> Fit:
        """Describe the fit."""
        from ... import __version__

        model = subject.model
        words = "none: least squares"
        if subject.likelihood is not None:
            name = model._parameter("likelihood")
            words = f"{name}: {subject.likelihood.words}"
        known = subject.likelihood is None or subject.likelihood.known_dispersion is not None
        return cls(
            estimator=type(model).__name__,
            likelihood=words,
            version=__version__,
            n_components=len(subject.components),
            n_samples=len(model.activations_),
            n_features=model.n_features_in_,
            seed=in_words(model.random_state),
            settings=changed_settings(model, {}, _ELSEWHERE),
            n_given=None if subject.data is None else len(subject.data),
            dispersion=None if known else float(model.dispersion_),
            noise=_noise(subject),
            r2=float(model.r2_),
            scaled=subject.scaled,
            solver=solver_of(model),
        )


def changed_settings(
    model: Any, needed: dict[str, Any], elsewhere: tuple[str, ...]
) -> dict[str, str]:
    """Settings that differ from the default, in words; an estimator `needed` some to be made."""
    defaults = type(model)(**needed).get_params(deep=False)
    return {
        name: in_words(value)
        for name, value in model.get_params(deep=False).items()
        if name not in elsewhere and not np.array_equal(value, defaults[name])
    }


def in_words(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {in_words(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        return ", ".join(value) or "none"
    if np.ndim(value) > 0:
        return f"array of shape {np.shape(value)}"
    if isinstance(value, (str, bool, int, float, np.number)):
        return f"{value}"
    return f"a {type(value).__name__}"


def _noise(subject: Subject) -> tuple[float, float] | None:
    """The least and the most noise of a feature; None for a model without any."""
    noise = np.asarray(getattr(subject.model, "_noise_scale", 0.0)) * subject.units
    return (float(noise.min()), float(noise.max())) if noise.any() else None
