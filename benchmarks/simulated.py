"""Simulated matrices whose factors are known, X = A · W + noise, of many kinds.

`KINDS` has one that is plain, and others that change one thing in it. "Signal / noise" is the ratio
of the root mean squares of A · W and of the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import NDArray
from recovery_scores import Factors
from scipy.ndimage import gaussian_filter1d

from seminmf._selection.heldout import hide
from seminmf.experiments._imputers import root_mean_square


class Draw(NamedTuple):
    """A matrix and what it was made of.

    Attributes
    ----------
    X : (J, I) array
        With NaN for gaps.
    truth : Factors
        In the unit that all features had at first.
    noise : (J, I) array
        In the units of X.
    units : (I,) array
        What the features were multiplied with.
    """

    X: NDArray
    truth: Factors
    noise: NDArray
    units: NDArray


# --- activations (J, K) -------------------------------------------------------------------------

Activations = Callable[[Generator, int, int], NDArray]


def gamma(shape: float) -> Activations:
    """Independent, with mean 1; the smaller the shape, the more of them are near 0."""

    def activations(random: Generator, J: int, K: int) -> NDArray:
        return random.gamma(shape, 1 / shape, size=(J, K))

    return activations


def dirichlet(random: Generator, J: int, K: int) -> NDArray:
    """Shares, with shape 0.5, times K: all samples have the same sum."""
    return K * random.dirichlet(np.full(K, 0.5), size=J)


def one_each(random: Generator, J: int, K: int) -> NDArray:
    """One component a sample, K · gamma of shape 2 and mean 1."""
    chosen = np.eye(K)[random.integers(K, size=J)]
    return K * chosen * random.gamma(2.0, 0.5, size=(J, 1))


def lognormal(random: Generator, J: int, K: int) -> NDArray:
    """Their logarithms have variance 1, and a correlation of 0.5 in a sample."""
    normal = random.normal(size=(J, K)) + random.normal(size=(J, 1))
    return np.exp(normal / np.sqrt(2) - 0.5)


# --- components (K, I) --------------------------------------------------------------------------

Components = Callable[[Generator, int, int], NDArray]


def dense(random: Generator, K: int, I: int) -> NDArray:
    """Normal numbers."""
    return random.normal(size=(K, I))


def sparse(random: Generator, K: int, I: int) -> NDArray:
    """Three in ten of them normal numbers, the others 0."""
    n_zeros = I - max(2, round(0.3 * I))
    components = dense(random, K, I)
    for component in components:
        component[random.choice(I, n_zeros, replace=False)] = 0.0
    return components


def smooth(random: Generator, K: int, I: int) -> NDArray:
    """Normal numbers, averaged over a tenth of the features on either side."""
    return gaussian_filter1d(dense(random, K, I), I / 10, axis=1, mode="wrap")


def one_signed(random: Generator, K: int, I: int) -> NDArray:
    """Absolute values of normal numbers."""
    return np.abs(dense(random, K, I))


# --- noise (J, I), of any size ------------------------------------------------------------------

Noise = Callable[[Generator, Factors], NDArray]


def gaussian(random: Generator, truth: Factors) -> NDArray:
    """The same in all cells."""
    return random.normal(size=truth.shape)


def student(random: Generator, truth: Factors) -> NDArray:
    """Student's t with three degrees of freedom."""
    return random.standard_t(3, size=truth.shape)


def by_feature(random: Generator, truth: Factors) -> NDArray:
    """Gaussian, with standard deviations from 1 to 25."""
    _, I = truth.shape
    return random.permutation(np.geomspace(1, 25, I)) * random.normal(size=truth.shape)


# --- kinds --------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """How a matrix is made; the defaults are the plain one.

    Attributes
    ----------
    n_samples, n_features, n_components : int
    activations, components, noise : callable
        `noise` is None for cells that are Skellam numbers, divided by M.
    unit_range : float
        Largest unit of a feature over the smallest.
    gaps : float
        Share of the cells.
    positive : bool
        Whether methods are told that the components are ≥ 0.
    """

    n_samples: int = 500
    n_features: int = 20
    n_components: int = 4
    activations: Activations = gamma(0.5)
    components: Components = dense
    noise: Noise | None = gaussian
    unit_range: float = 1.0
    gaps: float = 0.0
    positive: bool = False

    def draw(self, ratio: float, seed: list[int]) -> Draw:
        """A matrix with this signal / noise."""
        random = np.random.default_rng(seed)
        truth = self._factors(random)
        signal = truth.product()
        if self.noise is None:
            noise = skellam_cells(random, truth, ratio) - signal
        else:
            noise = self.noise(random, truth)
            noise *= root_mean_square(signal) / (ratio * root_mean_square(noise))
        units = self._units(random)
        X = self._with_gaps(units * (signal + noise), random)
        return Draw(X, truth, units * noise, units)

    def _factors(self, random: Generator) -> Factors:
        """Components have absolute values that sum to 1, so that activations are amounts."""
        activations = self.activations(random, self.n_samples, self.n_components)
        components = self.components(random, self.n_components, self.n_features)
        return Factors(activations, components / np.abs(components).sum(axis=1, keepdims=True))

    def _units(self, random: Generator) -> NDArray:
        largest = np.sqrt(self.unit_range)
        return random.permutation(np.geomspace(1 / largest, largest, self.n_features))

    def _with_gaps(self, X: NDArray, random: Generator) -> NDArray:
        if not self.gaps:
            return X
        hidden = hide(np.ones(X.shape, dtype=bool), self.gaps, RandomState(random.integers(2**31)))
        return np.where(hidden, np.nan, X)


def skellam_cells(random: Generator, truth: Factors, ratio: float) -> NDArray:
    """Skellam numbers over M, which is such that their mean variance fits the signal / noise."""
    activations, components = truth
    rates = np.array([activations @ np.maximum(sign * components, 0) for sign in (1, -1)])
    M = rates.sum(axis=0).mean() * ratio**2 / np.mean(truth.product() ** 2)
    positive, negative = random.poisson(M * rates)
    return (positive - negative) / M


PLAIN = Kind()
KINDS: dict[str, Kind] = {
    "plain": PLAIN,
    "gamma-0.3": PLAIN._replace(activations=gamma(0.3)),
    "gamma-1": PLAIN._replace(activations=gamma(1.0)),
    "gamma-5": PLAIN._replace(activations=gamma(5.0)),
    "dirichlet": PLAIN._replace(activations=dirichlet),
    "one-each": PLAIN._replace(activations=one_each),
    "lognormal": PLAIN._replace(activations=lognormal),
    "sparse-W": PLAIN._replace(components=sparse),
    "smooth-W": PLAIN._replace(components=smooth),
    "positive-W": PLAIN._replace(components=one_signed, positive=True),
    "student-t": PLAIN._replace(noise=student),
    "skellam": PLAIN._replace(noise=None),
    "noise-by-feature": PLAIN._replace(noise=by_feature),
    "units": PLAIN._replace(unit_range=100.0),
    "gaps-20": PLAIN._replace(gaps=0.2),
    "gaps-50": PLAIN._replace(gaps=0.5),
    "I-10": PLAIN._replace(n_features=10),
    "I-100": PLAIN._replace(n_features=100),
    "I-500": PLAIN._replace(n_features=500),
    "K-2": PLAIN._replace(n_components=2),
    "K-8": PLAIN._replace(n_components=8),
    "K-12": PLAIN._replace(n_components=12),
    "J-100": PLAIN._replace(n_samples=100),
    "J-2000": PLAIN._replace(n_samples=2000),
}
