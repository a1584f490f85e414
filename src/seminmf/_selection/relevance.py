"""Automatic relevance: one fit with many components, of which those not needed go out.

Each component has a prior rate of its own, and the rate follows the activations: α over their mean.
The less a component is used, the higher its rate, and the less it is used. Where the data do not
hold against that, its mean goes to 0 and its posterior to the prior.

A component is on if the data tell more about its activations than the prior: if the counts behind
it, α̂ − α, are more than α in the mean over the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .comparison import Comparison
from .fitting import fit_each
from .verdict import Verdict

# Counts over α between the inverse of this and this are too close to the threshold.
_NEAR = 5.0


class Fit(NamedTuple):
    """A fit's bound; and rate, mean activation, counts and counts / α of each component."""

    lower_bound: float
    rates: NDArray
    means: NDArray
    counts: NDArray
    relevances: NDArray

    @property
    def n_on(self) -> int:
        """Number of components that are on."""
        return int(np.sum(self.relevances > 1))


def relevance_of_run(comparison: Comparison, n_components: int, seed: int) -> Fit:
    """One start."""
    model = fit_each(comparison, n_components, seed)
    shape, rate = (
        np.broadcast_to(prior, model.activation_shape_.shape)[:, :n_components].mean(axis=0)
        for prior in (model.activation_shape_prior, model.activation_rate_prior)
    )
    counts = model.activation_shape_[:, :n_components].mean(axis=0) - shape
    # From units of each feature to that of X.
    sizes = model.atoms_[:, :n_components].sum(axis=0) @ comparison.scale
    means = sizes * model.activations_[:, :n_components].mean(axis=0)
    return Fit(model.lower_bound_, rate / sizes, means, counts, counts / shape)


def conclude(fits: Sequence[Fit]) -> Verdict:
    """The components that are on in the fit with the highest bound.

    It is clear if all starts leave as many on, no component is near the threshold, and at least one
    is off.
    """
    import pandas

    best = fits[int(np.argmax([fit.lower_bound for fit in fits]))]
    order = np.argsort(-best.means, kind="stable")
    table = pandas.DataFrame(
        {
            "component": np.arange(1, len(order) + 1),
            "share": best.means[order] / best.means.sum(),
            "activation": best.means[order],
            "rate": best.rates[order],
            "counts": best.counts[order],
            "on": best.relevances[order] > 1,
        }
    )
    return _judge(best, sorted({fit.n_on for fit in fits} - {best.n_on}), table)


def _judge(best: Fit, others: Sequence[int], table: object) -> Verdict:
    """The verdict, where other starts left `others` on."""
    n_on, n_components = best.n_on, len(best.relevances)
    near = int(np.sum((best.relevances > 1 / _NEAR) & (best.relevances < _NEAR)))
    sentence = f"{n_on} of {n_components} components are on"
    doubts = []
    if others:
        doubts.append(f"other starts left {', '.join(map(str, others))} on")
    if near:
        doubts.append(f"{near} {'is' if near == 1 else 'are'} near the threshold")
    if n_on == n_components:
        doubts.append("none is off, try more")
    if doubts:
        return Verdict(n_on, False, f"Not clear: {sentence}, but {'; '.join(doubts)}.", table)
    return Verdict(n_on, True, f"{sentence}, the others are clearly off.", table)
