"""Rules for atoms: the split of signed components, and the normalisation with a floor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# A component with expected counts below this is dead: they cannot be divided by their sum.
NOTHING = 1e-250


def split_signed(components: NDArray) -> NDArray:
    """θ_s ∝ (|W| + (−1)^s W) / 2: positive and negative parts (paper, third experiment)."""
    return np.stack([np.maximum(components, 0), np.maximum(-components, 0)])


def normalise(counts: NDArray, floor: float = 0.0) -> NDArray:
    """Maximise Σ c ln θ over θ ≥ floor with Σ_si θ = 1: θ = max(c / ν, floor), for one ν.

    A floor that is applied before the division by the sum would move, and the objective with it.
    """
    counts = np.maximum(counts, 0)
    if floor == 0:
        total = counts.sum(axis=(0, 2), keepdims=True)
        return counts / np.where(total > NOTHING, total, 1)
    bound = np.zeros(counts.shape, dtype=bool)
    while True:
        free_mass = 1 - floor * np.sum(bound, axis=(0, 2), keepdims=True)
        total = np.sum(np.where(bound, 0, counts), axis=(0, 2), keepdims=True)
        atoms = np.where(bound, floor, counts * (free_mass / np.where(total > NOTHING, total, 1)))
        below = ~bound & (atoms < floor)
        if not below.any():
            return atoms
        bound |= below
