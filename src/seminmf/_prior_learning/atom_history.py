"""What matrices say of ln θ, in a form that follows the prior.

E[ln θ] of a posterior depends on the prior that the posterior was found with. For an entry that the
data hardly see it depends on little else, and a prior that is learned from means of E[ln θ] then
follows itself: a small shape is approached in steps that are smaller still. What the data say can
be kept instead. With z = θ/θ̂, where θ̂ is the best value for the prior shape α̂, and with the
information f of the data, the posterior for another shape α is about

    z^(α−1) exp(−½ f (z−1)² − α̂ (z−1)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._kernels.evidence.log_means import add_log_means

# More matrices than this are not kept: those before are taken as they are.
_MOST_RECORDS = 300


class AtomRecord(NamedTuple):
    """What one matrix says: ln θ̂, its information, and the prior shape; each (2, K, I)."""

    log_best: NDArray
    information: NDArray
    best_for: NDArray

    def ordered(self, order: NDArray) -> AtomRecord:
        """The same with its components in another order."""
        return AtomRecord(*(part[:, order] for part in self))


class AtomHistory(NamedTuple):
    """Weighted matrices, of which the latest follow the prior.

    Attributes
    ----------
    settled : (2, K, I) array
        Σ weight · E[ln θ] of those that do not follow the prior.
    weights : (T,) array
    log_best, information, best_for : (T, 2, K, I) arrays
        Records of those that do.
    """

    settled: NDArray
    weights: NDArray
    log_best: NDArray
    information: NDArray
    best_for: NDArray

    @classmethod
    def fixed(cls, log_atoms: NDArray) -> AtomHistory:
        """One matrix with this E[ln θ], whatever the prior."""
        nothing = np.zeros((0, *log_atoms.shape))
        return cls(log_atoms, np.zeros(0), nothing, nothing, nothing)

    @classmethod
    def following(cls, record: AtomRecord) -> AtomHistory:
        """One matrix that follows the prior."""
        parts = (part[None].astype(np.float64) for part in record)
        return cls(np.zeros(record.log_best.shape), np.ones(1), *parts)

    def log_atoms(self, atom_shape: NDArray) -> NDArray:
        """Weighted mean of E[ln θ] if the prior has these shapes."""
        total = np.array(self.settled, dtype=np.float64)
        shape = np.array(np.broadcast_to(atom_shape, total.shape), dtype=np.float64)
        add_log_means(*self[1:], shape, total)
        return total

    def times(self, weight: float) -> AtomHistory:
        """All weights multiplied."""
        return self._replace(settled=weight * self.settled, weights=weight * self.weights)

    def joined(self, *others: AtomHistory) -> AtomHistory:
        """These matrices and others."""
        settled, *records = zip(self, *others, strict=True)
        return AtomHistory(np.sum(settled, axis=0), *(np.concatenate(parts) for parts in records))

    def shortened(self, atom_shape: NDArray) -> AtomHistory:
        """The same without the records before the latest, which settle where they are."""
        n_old = max(0, len(self.weights) - _MOST_RECORDS)
        old = AtomHistory(self.settled, *(part[:n_old] for part in self[1:]))
        return AtomHistory(old.log_atoms(atom_shape), *(part[n_old:] for part in self[1:]))
