"""Components that a search for noise starts from, where none are given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .noise import Search, added_sample, first

# Rounds in which samples are gathered around directions.
_GATHERING = 10


def random_numbers(search: Search, n_components: int, random: RandomState) -> NDArray:
    """Normal numbers, of the features' sizes."""
    return random.normal(size=(n_components, len(search.sizes))) * np.sqrt(search.sizes)


def worst_samples(search: Search, n_components: int, random: RandomState) -> NDArray:
    """Samples: one after the other, that which those before it fit worst.

    What a few samples have in common, and most have not, is found from here; from random components
    it often is not.
    """
    return _samples(search, n_components, lambda misfit: int(np.argmax(misfit)))


def likely_samples(search: Search, n_components: int, random: RandomState) -> NDArray:
    """Samples, drawn one after the other by how badly those before it fit them."""

    def draw(misfit: NDArray) -> int:
        share = np.cumsum(misfit)
        return min(int(np.searchsorted(share, random.uniform() * share[-1])), len(share) - 1)

    return _samples(search, n_components, draw)


def directions(search: Search, n_components: int, random: RandomState) -> NDArray:
    """Means of samples that point the same way: k-means on directions."""
    centre = first(search, np.zeros((n_components, len(search.sizes))), 0.0).intercept
    sizes = np.sqrt(search.sizes)
    samples = (search.data.X - centre) * search.data.observed / sizes
    weighted = samples * search.data.weights[:, None]
    centres = likely_samples(search, n_components, random) / sizes
    for _ in range(_GATHERING):
        length = np.linalg.norm(centres, axis=1, keepdims=True)
        cosines = samples @ (centres / np.where(length > 0, length, 1.0)).T
        own = np.eye(n_components)[np.argmax(cosines, axis=1)]
        centres = np.where(own.any(axis=0)[:, None], own.T @ weighted, centres)
    return centres * sizes


def _samples(search: Search, n_components: int, choose: Callable[[NDArray], int]) -> NDArray:
    """Components that are samples, one after the other, chosen by how badly each is fitted."""
    components = np.zeros((0, len(search.sizes)))
    for _ in range(n_components):
        state = first(search, np.vstack([components, np.zeros_like(search.sizes)]), 0.0)
        components = added_sample(search, state, choose).components
    return components


METHODS = {
    "worst samples": worst_samples,
    "directions": directions,
    "likely samples": likely_samples,
    "random": random_numbers,
}
