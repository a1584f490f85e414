"""What a careful colleague would point out: a rule for each, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..._views.concerns import (
    EMPTY,
    Concern,
    cancelling_components,
    crowded_cluster,
    empty_components,
    listed,
    little_explained,
    single_start,
    small_features_explained,
    unfinished,
)
from ..._views.dominance import dominant_feature
from ..._views.ending import is_drawn
from ..._views.misfit import root_mean_square
from ..._views.shares import shares
from ..subject import Subject

UNUSED = 0.01
ALIKE = 0.95
STABLE = 0.9
# How often the residuals' variance may be what the model says, for integers and for real numbers:
# their dispersion is found by divergences, which weigh cells far out less than squares do.
OVERDISPERSED, NOISY = 2.0, 5.0
_MOST_NAMES = 5


def concerns(subject: Subject) -> list[Concern]:
    """All that is worth a look, the gravest first."""
    found = (rule(subject) for rule in _RULES)
    return [concern for concern in found if concern is not None]


# --- the fit ------------------------------------------------------------------------------------


def _not_converged(subject: Subject) -> Concern | None:
    model = subject.model
    if is_drawn(model) and not model.converged_ and model.stop_reason_ != "interrupted":
        return Concern(
            "The draws have not settled",
            f"The first half of {model.n_iter_} sweeps has other components than the second: what "
            "the data leave open is larger than the intervals say. Fewer components would settle "
            "sooner.",
        )
    return unfinished(model)


def _unstable(subject: Subject) -> Concern | None:
    stability = float(subject.model.stability_)
    if not stability < STABLE:  # NaN is a single start
        return None
    return Concern(
        "Other starts led elsewhere",
        "The components of the starts have a mean cosine of "
        f"{stability:.2f} to those of the best one. Do not read much into single components; try "
        "fewer of them, or more starts (n_init).",
    )


def _more_parameters_than_cells(subject: Subject) -> Concern | None:
    n_components, n_features = subject.components.shape
    n_parameters = n_components * (len(subject.activations) + n_features)
    n_cells = _n_observed(subject)
    if n_parameters < n_cells:
        return None
    return Concern(
        "More numbers are fitted than observed",
        f"Components and activations are {n_parameters:,} numbers, and {n_cells:,} cells are "
        "observed: the fit follows the noise, and its dispersion means nothing. Fit fewer "
        "components.",
    )


def _noise(subject: Subject) -> Concern | None:
    ratio = _noise_ratio(subject)
    integer = subject.likelihood is not None and subject.likelihood.integers
    if ratio is None or (ratio <= OVERDISPERSED if integer else 1 / NOISY <= ratio <= NOISY):
        return None
    width = f" Intervals are too {'narrow' if ratio > 1 else 'wide'}." if subject.bayesian else ""
    times = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    found = f"The squares of the residuals are {times} times what the"
    if integer:
        return Concern(
            "The counts vary more than the model allows",
            f"{found} integer likelihood expects.{width} Try more components, or "
            "likelihood='real', which finds the dispersion from the data.",
        )
    if ratio > 1:
        advice = "look at the features and samples that are fitted worst, or try more components"
    else:
        advice = "the level was set too high, which happens with few features"
    return Concern(
        "The noise does not match these data",
        f"{found} noise and dispersion of the fit say.{width} If these are the data of the fit, in "
        f"the same unit, {advice}.",
    )


def _noise_ratio(subject: Subject) -> float | None:
    """Variance of the residuals over that of the model, given the degrees of freedom."""
    n_cells, residuals = _n_observed(subject), subject.residuals
    n_left = n_cells - subject.n_fitted
    deviations = subject.standard_deviations
    if residuals is None or deviations is None or n_left <= 0:
        return None
    expected = root_mean_square(deviations[~np.isnan(residuals)])
    if expected == 0:
        return None
    return float(root_mean_square(residuals) / expected) ** 2 * n_cells / n_left


# --- the components -----------------------------------------------------------------------------


def _unused(subject: Subject) -> Concern | None:
    share = shares(subject.model)
    small = np.flatnonzero((share >= EMPTY) & (share < UNUSED)).tolist()
    if not small:
        return None
    one = len(small) == 1
    return Concern(
        "A component is hardly used" if one else "Some components are hardly used",
        f"{listed('Component', small)} {'has' if one else 'have'} less than {UNUSED:.0%} of all "
        f"amounts{'' if one else ' each'}. Fewer components may do; select_n_components tells how "
        "many.",
    )


def _alike(subject: Subject) -> Concern | None:
    lengths = root_mean_square(subject.components, axis=1)[:, None]
    units = subject.components / np.where(lengths > 0, lengths, 1.0)
    cosines = np.triu(units @ units.T / units.shape[1], k=1)
    pairs = np.argwhere(cosines > ALIKE)
    if not len(pairs):
        return None
    named = [f"{first} and {second}" for first, second in pairs[:_MOST_NAMES]]
    more = "" if len(pairs) <= _MOST_NAMES else f", and {len(pairs) - _MOST_NAMES} more pairs"
    return Concern(
        "Some components are nearly equal",
        f"The components {'; '.join(named)}{more} have a cosine above {ALIKE}: they share what one "
        "could do alone. Try fewer components.",
    )


# --- the data -----------------------------------------------------------------------------------


def _never_observed(subject: Subject) -> Concern | None:
    if subject.values is None:
        return None
    empty = np.isnan(subject.values)
    features, samples = np.flatnonzero(empty.all(axis=0)), np.flatnonzero(empty.all(axis=1))
    parts = []
    if features.size:
        parts.append(listed("Feature", [subject.feature_names[i] for i in features]))
    if samples.size:
        parts.append(listed("Sample", [subject.sample_names[j] for j in samples]))
    if not parts:
        return None
    return Concern(
        "Something was never observed",
        f"{' and '.join(parts)} {'has' if features.size + samples.size == 1 else 'have'} gaps "
        "only: what is filled in there is the prior, and no finding. Leave them out.",
    )


def _dominated(subject: Subject) -> Concern | None:
    if subject.values is None:
        return None
    squares = (root_mean_square(subject.values, axis=0) / _size(subject.values)) ** 2
    squares = np.nan_to_num(squares) * np.sum(~np.isnan(subject.values), axis=0)
    dominant = dominant_feature(squares)
    if dominant is None:
        return None
    return Concern(
        "One feature outweighs the others",
        f"{_named(subject.feature_names[dominant.feature])} holds {dominant.share:.0%} of the sum "
        "of squares, so the fit is mostly about it. If features have different units, divide each "
        "by its standard deviation before the fit.",
    )


def _small_features(subject: Subject) -> Concern | None:
    return small_features_explained(subject.model.r2_, subject.model._r2_of_same_noise)


def _looks_like_counts(subject: Subject) -> Concern | None:
    values, scaled = subject.values, subject.scaled
    if values is None or scaled or subject.likelihood is None or subject.likelihood.integers:
        return None
    cells = values[~np.isnan(values)]
    if np.any(cells != np.rint(cells)) or np.abs(cells).max() <= 1:
        return None
    return Concern(
        "The data are integers",
        "They were fitted as real numbers. If they are counts or differences of counts, "
        "likelihood='integer' knows their noise, and often fits better.",
    )


# Those that need no data are also what `seminmf info` looks for.
_RULES: tuple[Callable[[Subject], Concern | None], ...] = (
    _not_converged,
    lambda subject: little_explained(subject.model.r2_),
    _small_features,
    _more_parameters_than_cells,
    _unstable,
    _never_observed,
    _dominated,
    lambda subject: empty_components(shares(subject.model)),
    _unused,
    lambda subject: cancelling_components(subject.model.activations_, subject.components),
    _alike,
    lambda subject: crowded_cluster(subject.model.amounts_),
    _looks_like_counts,
    _noise,
    lambda subject: single_start(subject.model),
)


# --- words and sizes ------------------------------------------------------------------------------


def _n_observed(subject: Subject) -> int:
    """Observed cells of the data; without data, all cells of the fit."""
    if subject.values is None:
        return len(subject.activations) * subject.components.shape[1]
    return int(np.sum(~np.isnan(subject.values)))


def _size(values: NDArray) -> float:
    return float(np.max(np.abs(values), initial=0.0, where=~np.isnan(values))) or 1.0


def _named(name: str) -> str:
    return f"“{name}”"
