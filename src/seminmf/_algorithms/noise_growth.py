"""Noise that grows with the signal, as that of counts does: how much of it, found from a chain.

The variance of a cell is σ_i² (1 − g + g m_ji / m_i). m_ji = Σ_k a_jk |W_ki| is what components put
into it, m_i its mean over the samples, and g the share of the noise that grows: 0 for noise that is
the same in all samples, 1 for numbers that are counts over M. Intervals of components would be too
narrow without it: samples that have much of a component say less than their number tells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Shares that are compared, and nats by which one has to be better than none.
_SHARES, _CLEAR = (*(float(share) for share in np.linspace(0.0, 0.9, 10)), 0.95, 0.98), 10.0
# A share is at most the signal's part of all squares, and half a step. Where there is as much noise
# as signal, that of a single cell is not known: samples that seem to have none would get next to no
# noise, and lead the chain astray.
_HALF_A_STEP = 0.05


class NoiseGrowth(NamedTuple):
    """How the noise of cells differs from that of their feature.

    Attributes
    ----------
    share : float
        g.
    activations : (J, K) array
        Means of a.
    sizes : (K, I) array
        |W_ki| / m_i.
    typical : (I,) array
        m_i.
    log_total : float
        Σ ln of the relative variances, over the observed cells.
    """

    share: float
    activations: NDArray
    sizes: NDArray
    typical: NDArray
    log_total: float

    def relative(self, rows: slice) -> NDArray:
        """Variances of the cells of some samples over those of their features."""
        return relative_variances(self.share, self.activations[rows] @ self.sizes)


def relative_variances(share: float, signal: NDArray) -> NDArray:
    """1 − g + g m_ji / m_i, for `signal` m_ji / m_i."""
    return 1 - share + share * signal


def typical_signal(activations: NDArray, weights: NDArray, sizes: NDArray) -> NDArray:
    """m_i, at least next to nothing."""
    typical = (weights @ activations / weights.sum()) @ sizes
    return np.maximum(typical, np.finfo(float).tiny)


class ShareSums(NamedTuple):
    """Sums over cells for each share that is compared.

    Attributes
    ----------
    squares : (S, I) array
        Σ_j of squared residuals over their relative variances.
    logarithms : (S,) array
        Σ of the logarithms of these.
    signal : (1,) array
        Σ of the squares of the signal, in units of the noise.
    """

    squares: NDArray
    logarithms: NDArray
    signal: NDArray

    @classmethod
    def empty(cls, n_features: int) -> ShareSums:
        """Zeros."""
        return cls(np.zeros((len(_SHARES), n_features)), np.zeros(len(_SHARES)), np.zeros(1))

    def add(self, errors: NDArray, fitted: NDArray, signal: NDArray, weights: NDArray) -> None:
        """Add some samples: residuals, NaN in gaps, and the fit, in units of noise; m_ji / m_i."""
        seen = ~np.isnan(errors)
        self.signal[0] += weights @ np.einsum("ji,ji,ji->j", seen, fitted, fitted)
        squares = np.where(seen, errors, 0.0) ** 2
        for number, share in enumerate(_SHARES):
            relative = relative_variances(share, signal)
            self.squares[number] += weights @ (squares / relative)
            self.logarithms[number] += weights @ np.einsum("ji,ji->j", seen, np.log(relative))

    def best(self, counts: NDArray) -> tuple[float, float]:
        """The most probable share and its sum of logarithms; 0 and 0 unless it is clear."""
        seen = counts > 0
        variances = np.maximum(self.squares[:, seen] / counts[seen], np.finfo(float).tiny)
        nats = -0.5 * (np.log(variances) @ counts[seen] + self.logarithms)
        most = self.signal[0] / (self.signal[0] + counts.sum()) + _HALF_A_STEP
        nats[1:][np.array(_SHARES[1:]) > most] = -np.inf
        number = int(np.argmax(nats))
        if not nats[number] > nats[0] + _CLEAR:
            return 0.0, 0.0
        return float(_SHARES[number]), float(self.logarithms[number])
