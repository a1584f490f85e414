"""What a careful colleague would point out about a fitted model, without a look at its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .shares import shares

# A component with a smaller share adds nothing that one could see, not even in float32.
EMPTY = 1e-6
# Below this R² there is nothing to show.
EXPLAINED = 0.01
# Below this share of what could be explained, small features have the components.
LESS_EXPLAINED = 0.6
# One cluster with more samples than this tells hardly anything of a sample.
CROWDED = 0.9
# Components of about the same size with signs by chance leave 1/√K of what they add up to; half of
# that is no chance any more.
CANCELLED = 0.5
# So many samples, evenly spaced, tell how much components cancel.
_MOST_SAMPLES = 2000
_MOST_NAMES = 5


@dataclass(frozen=True)
class Concern:
    """What is the matter, and what to do."""

    title: str
    text: str


def about_model(model: Any) -> list[Concern]:
    """All that is worth a look in a fitted model, the gravest first.

    Parameters
    ----------
    model : fitted estimator
        With `activations_`, `amounts_`, `components_`, `r2_`, and `stability_`.
    """
    found = (
        little_explained(model.r2_),
        small_features_explained(model.r2_, model._r2_of_same_noise),
        empty_components(shares(model)),
        cancelling_components(model.activations_, model._components_of_fit),
        crowded_cluster(model.amounts_),
        single_start(model),
    )
    return [concern for concern in found if concern is not None]


def about_tensors(model: Any) -> list[Concern]:
    """All that is worth a look in a fitted tensor model, the gravest first.

    Parameters
    ----------
    model : fitted estimator
        With `r2_`, `r2_drop_`, `converged_`, `stop_reason_` and `n_iter_`.
    """
    found = [unfinished(model), little_explained(model.r2_)]
    for letter, drops in model.r2_drop_.items():
        empty = np.flatnonzero(np.abs(drops) < EMPTY).tolist()
        if empty and len(empty) < len(drops):
            verb, them = ("explain", "them") if len(empty) > 1 else ("explains", "it")
            found.append(
                Concern(
                    f"{listed('Value', empty)} of {letter} {verb} nothing",
                    f"Without {them} R² stays what it is. A smaller size of {letter} would do.",
                )
            )
    return [concern for concern in found if concern is not None]


def unfinished(model: Any) -> Concern | None:
    """A fit that ended before it had converged."""
    if model.converged_:
        return None
    if model.stop_reason_ == "interrupted":
        return Concern(
            "The fit was interrupted",
            f"It was stopped after {model.n_iter_} iterations, and what is shown is the state of "
            "that moment. Fit again, and let it run to its end.",
        )
    return Concern(
        "The fit has not converged",
        f"It ended after max_iter = {model.max_iter} iterations while it still got better. Raise "
        "max_iter, or tol if an approximate fit will do.",
    )


def little_explained(r2: float) -> Concern | None:
    """R² next to 0, or below; NaN is not known.

    Examples
    --------
    >>> little_explained(0.004).title
    'Next to nothing is explained: R² is 0.004'
    """
    if not r2 < EXPLAINED:
        return None
    return Concern(
        f"Next to nothing is explained: R² is {r2:.3g}",
        "Activations · components are hardly nearer to the data than zeros are. The data may be "
        "noise or zeros, or need more components or a weaker prior.",
    )


def small_features_explained(r2: float, r2_of_same_noise: float) -> Concern | None:
    """R² far below that of components for which all features have the same noise.

    Examples
    --------
    >>> small_features_explained(0.05, 0.4).title
    'R² is 0.05, where as many components could reach 0.4'
    >>> small_features_explained(0.3, 0.4)
    """
    if not r2 < LESS_EXPLAINED * r2_of_same_noise:
        return None
    return Concern(
        f"R² is {r2:.2g}, where as many components could reach {r2_of_same_noise:.2g}",
        "Features count in units of their noise, so the components went to features with little "
        "noise, and these are small. If features are to count by their size, take noise='same'; if "
        "all are to count alike, scale them, and R² will speak of all of them.",
    )


def empty_components(component_shares: NDArray) -> Concern | None:
    """Components that add nothing to any sample.

    Examples
    --------
    >>> empty_components(np.array([0.7, 0.0, 0.3])).title
    'Component 1 is empty'
    >>> empty_components(np.array([0.7, 0.3]))
    """
    empty = np.flatnonzero(component_shares < EMPTY).tolist()
    if not empty:
        return None
    one = len(empty) == 1
    return Concern(
        f"{listed('Component', empty)} {'is' if one else 'are'} empty",
        f"{'It adds' if one else 'They add'} nothing to any sample: the data do not need so many "
        "components, or another start finds a use for all of them.",
    )


def cancelling_components(activations: Any, components: NDArray) -> Concern | None:
    """Components of which little is left where they meet."""
    left = left_of_sum(activations, components)
    if not left < CANCELLED / np.sqrt(len(components)):
        return None
    return Concern(
        "The components mostly cancel each other",
        f"Of all that they put into the cells {left:.0%} is left after they are added up: one "
        "takes away what another brings, and neither is a part of the data. Do not read much into "
        "single components; try fewer of them.",
    )


def left_of_sum(activations: Any, components: NDArray) -> float:
    """Σ |Σ_k a_k W_k| / Σ Σ_k |a_k W_k| over the cells: 1 if no component cancels another.

    Parameters
    ----------
    activations : array of shape (n_samples, n_components)
    components : ndarray of shape (n_components, n_features)

    Returns
    -------
    float
        NaN if all products are 0.

    Examples
    --------
    >>> activations = np.array([[2.0, 1.0]])
    >>> left_of_sum(activations, np.array([[1.0, 0.0], [0.0, -1.0]]))
    1.0
    >>> round(left_of_sum(activations, np.array([[1.0, 3.0], [-1.0, -3.0]])), 3)
    0.333
    """
    step = -(-len(activations) // _MOST_SAMPLES)
    chosen = np.asarray(activations[::step], dtype=np.float64)
    sizes = np.abs(components).max(axis=1)
    amounts = chosen * sizes
    # In units of the largest: no overflow, whatever their size.
    amounts = amounts / (amounts.max() or 1.0)
    relative = components / np.where(sizes > 0, sizes, 1.0)[:, None]
    whole = float((amounts @ np.abs(relative)).sum())
    return float(np.abs(amounts @ relative).sum()) / whole if whole > 0 else float("nan")


def crowded_cluster(amounts: Any) -> Concern | None:
    """A cluster that has nearly all samples.

    Examples
    --------
    >>> crowded_cluster(np.array([[3.0, 1.0]] * 19 + [[1.0, 3.0]])).title
    'Nearly all samples are in one cluster'
    """
    clusters = np.asarray(np.argmax(amounts, axis=1))
    sizes = np.bincount(clusters, minlength=amounts.shape[1])
    part = sizes.max() / len(clusters)
    if len(sizes) == 1 or part <= CROWDED:
        return None
    return Concern(
        "Nearly all samples are in one cluster",
        f"Component {int(sizes.argmax())} puts the largest amount into {part:.0%} of them, so "
        "clusters tell little. If it is what all samples have in common, look at the amounts of "
        "the others.",
    )


def single_start(model: Any) -> Concern | None:
    """Components that were not compared with those of another start."""
    if not np.isnan(model.stability_):
        return None
    return Concern(
        "Only one start was made",
        "How stable the components are was not checked: n_init=1. With n_init=10 the best of ten "
        "starts is kept, and stability_ tells how alike their components are.",
    )


def listed(kind: str, names: Sequence) -> str:
    """ "Component 3", or "Components 3, 5 and 7": the first of many.

    Examples
    --------
    >>> listed("Component", [3]), listed("Feature", ["a", "b"])
    ('Component 3', 'Features “a” and “b”')
    """
    shown = [f"“{name}”" if isinstance(name, str) else str(name) for name in names[:_MOST_NAMES]]
    if len(names) == 1:
        return f"{kind} {shown[0]}"
    if len(names) > _MOST_NAMES:
        shown.append(f"{len(names) - _MOST_NAMES} more")
    return f"{kind}s {', '.join(shown[:-1])} and {shown[-1]}"
