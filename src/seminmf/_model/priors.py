"""The priors: the gamma prior of activations, and the Dirichlet prior of atoms.

Each has its M-step, its posterior with geometric means and part of the bound, its density and its
draws.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from .._numerics.arguments import check_arrays, spread
from .._numerics.compilation import flat
from .._numerics.compiled import kernel
from .._numerics.gamma import gamma_terms
from .._numerics.random import draw_dirichlet, draw_log_gamma

# Where a shape is below 1 its density has no maximum: activations are then kept above this floor,
# in the unit of computations.
ACTIVATION_FLOOR = 1e-12


class Gamma(NamedTuple):
    """Gamma distributions of the entries of an array (J, K): shapes α and rates β.

    Both have two axes and broadcast to (J, K); with one row they are the same for all samples.
    Methods that take values work on the samples that the arrays are of (`of_samples`).
    """

    shape: NDArray
    rate: NDArray

    @property
    def n_rows(self) -> int:
        """1 if the prior is the same for all samples, or else their number."""
        return max(len(self.shape), len(self.rate))

    @property
    def is_exponential(self) -> bool:
        """Whether all shapes are 1."""
        return bool(np.all(self.shape == 1))

    @property
    def is_log_concave(self) -> bool:
        """Whether no shape is below 1."""
        return bool(np.all(self.shape >= 1))

    @property
    def floor(self) -> float:
        """What values are kept above."""
        return 0.0 if self.is_log_concave else ACTIVATION_FLOOR

    @property
    def mean(self) -> NDArray:
        """α / β."""
        return self.shape / self.rate

    def of_samples(self, rows: Any) -> Gamma:
        """The prior of some samples."""
        return Gamma(*(part if len(part) == 1 else part[rows] for part in self))

    # --- maximum a posteriori: the paper's Algorithm 1 -------------------------------------------

    def m_step(
        self,
        values: NDArray,
        expected: NDArray,
        weights: NDArray,
        mass: float,
        exposure: NDArray | float = 1.0,
    ) -> float:
        """Put (λU + α − 1) / (E + β), not below the floor, in the place of U.

        One unit of λ counts as `mass` against the prior, and E, the exposure, is what λ is
        multiplied by in all cells together: 1 for atoms that sum to 1. Returns `log_prior` at the
        old values.
        """
        self._check(values, weights, expected=expected)
        excess, rate = self._rows_in_unit(values.shape[1], mass)
        before = _log_prior(values, excess, rate, bool(excess.any()), weights)
        _m_step(values, expected, excess, 1 / (exposure + rate), self.floor)
        return before

    def log_prior(self, values: NDArray, weights: NDArray, mass: float) -> float:
        """Σ (α − 1) ln λ − βλ, of which one unit counts as `mass`; without `log_unit`."""
        self._check(values, weights)
        excess, rate = self._rows_in_unit(values.shape[1], mass)
        return _log_prior(values, excess, rate, bool(excess.any()), weights)

    def _check(self, values: NDArray, weights: NDArray, **others: NDArray) -> None:
        """Refuse arrays that do not go with the prior, or with each other."""
        check_arrays(
            {"J": values.shape[0], "K": values.shape[1]},
            values=("JK", values),
            weights=("J", weights),
            shape=("?JK", self.shape),
            rate=("?JK", self.rate),
            **{name: ("JK", array) for name, array in others.items()},
        )

    def _rows_in_unit(self, n_components: int, mass: float) -> tuple[NDArray, NDArray]:
        """α − 1 in units of `mass`, and β: one row for all samples, or one for each."""
        excess, rate = (
            spread(part, (len(part), n_components)) for part in ((self.shape - 1) / mass, self.rate)
        )
        return excess, rate

    def log_unit(self, n_components: int, weights: NDArray, mass: float) -> float:
        """What Σ (α − 1) ln λ lacks when λ is in units of 1 / mass."""
        if self.is_exponential:
            return 0.0
        excess = np.broadcast_to(self.shape - 1, (len(weights), n_components))
        rows = np.sum(excess, axis=1, dtype=np.float64)
        return float(rows @ weights) * math.log(mass)

    # --- variational Bayes: the paper's Algorithm 2 ----------------------------------------------

    def posterior(self, counts: NDArray) -> NDArray:
        """Shapes α̂ = counts + α, in the place of the counts; the rates are 1 + β always."""
        counts += self.shape.astype(counts.dtype)
        return counts

    def posterior_rate(self, mass: float = 1.0, exposure: NDArray | float = 1.0) -> NDArray:
        """β̂ = E + β, for values of which one unit counts as `mass`; E is 1 for atoms."""
        return mass * (exposure + self.rate)

    def geometric_means(
        self,
        shape: NDArray,
        weights: NDArray,
        mass: float,
        out: NDArray,
        exposure: NDArray | float = 1.0,
    ) -> float:
        """Fill `out` with exp ψ(α̂) / β̂; returns the posterior's part of the bound.

        It is Σ αψ(α̂) + lnΓ(α̂) − α̂ψ(α̂), to which `bound_constant` belongs.
        """
        self._check(shape, weights, out=out)
        prior_shape, inverse = (
            spread(part, shape.shape)
            for part in (self.shape, 1 / self.posterior_rate(mass, exposure))
        )
        terms = np.empty(shape.size)
        return _geometric_means(shape, prior_shape, inverse, weights, terms, out)

    def bound_constant(self, exposure: NDArray | float = 1.0) -> NDArray:
        """The part of the bound that depends on the prior and E alone, for each entry."""
        return self.shape * np.log(self.rate / (exposure + self.rate)) - gammaln(self.shape)

    # --- density and draws ---------------------------------------------------------------------

    def log_normaliser(self) -> NDArray:
        """α ln β − ln Γ(α), for each entry."""
        return self.shape * np.log(self.rate) - gammaln(self.shape)

    def log_density(self, logs: NDArray, values: NDArray, count: int = 1) -> NDArray:
        """Log-density of ln λ; of `count` entries whose ln λ and λ sum to `logs` and `values`."""
        return count * self.log_normaliser() + self.shape * logs - self.rate * values

    def scores(self, values: NDArray, logs: NDArray) -> tuple[NDArray, NDArray]:
        """Derivatives of E[log-density] by ln α and by ln β, from E[λ] and E[ln λ]."""
        by_shape = self.shape * (np.log(self.rate) - digamma(self.shape) + logs)
        return by_shape, self.shape - self.rate * values

    def draw(self, random: RandomState, size: tuple[int, ...] | None = None) -> NDArray:
        """Draws, of the arrays' shape or of another that ends with it."""
        return random.gamma(self.shape.astype(np.float64), size=size) / self.rate

    def draw_logs(self, random: RandomState) -> NDArray:
        """Logarithms of draws, which are safe for small shapes."""
        return draw_log_gamma(self.shape, random) - np.log(self.rate)


@kernel
def _m_step(values, expected, excess, inverse, floor):
    n_samples, n_components = values.shape
    for j in range(n_samples):
        a, b = min(j, excess.shape[0] - 1), min(j, inverse.shape[0] - 1)
        for k in range(n_components):
            updated = (values[j, k] * expected[j, k] + excess[a, k]) * inverse[b, k]
            expected[j, k] = max(updated, floor)


@kernel
def _log_prior(values, excess, rate, curved, weights):
    n_samples, n_components = values.shape
    total = 0.0
    for j in range(n_samples):
        row = 0.0
        a, b = min(j, excess.shape[0] - 1), min(j, rate.shape[0] - 1)
        for k in range(n_components):
            row -= rate[b, k] * values[j, k]
        if curved:
            for k in range(n_components):
                if excess[a, k] != 0.0:
                    row += excess[a, k] * np.log(np.float64(values[j, k]))
        total += weights[j] * row
    return total


@kernel
def _geometric_means(shape, prior_shape, inverse_rate, weights, terms, out):
    n_samples, n_components = shape.shape
    # Flat, because a loop over a few components would hardly use a vector.
    flat_shape, flat_prior = flat(shape), flat(prior_shape)
    flat_inverse, flat_out = flat(inverse_rate), flat(out)
    for n in range(shape.size):
        alpha = np.float64(flat_shape[n])
        exp_digamma, digamma, entropy = gamma_terms(alpha)
        flat_out[n] = exp_digamma * flat_inverse[n]
        terms[n] = flat_prior[n] * digamma + entropy - alpha
    total = 0.0
    for j in range(n_samples):
        row = 0.0
        for k in range(n_components):
            row += terms[j * n_components + k]
        total += weights[j] * row
    return total


# Where a shape is below 1 its density has no maximum: atoms are then kept above this floor.
ATOM_FLOOR = 1e-12
# A component with expected counts below this is dead: they cannot be divided by their sum.
NOTHING = 1e-250
# Atoms (2, K, I) sum to 1 over these axes, signs and features.
AXES = (0, 2)


class Dirichlet(NamedTuple):
    """Dirichlet distributions of atoms (2, K, I), one for each component: shapes α.

    The array has three axes and broadcasts to (2, K, I).
    """

    shape: NDArray

    @property
    def is_flat(self) -> bool:
        """Whether all shapes are 1."""
        return bool(np.all(self.shape == 1))

    @property
    def is_log_concave(self) -> bool:
        """Whether no shape is below 1."""
        return bool(np.all(self.shape >= 1))

    @property
    def floor(self) -> float:
        """What atoms are kept above."""
        return 0.0 if self.is_log_concave else ATOM_FLOOR

    def mean(self, shape: tuple[int, ...]) -> NDArray:
        """α / Σα, for atoms of this shape."""
        return normalise(np.broadcast_to(self.shape, shape))

    # --- maximum a posteriori: the paper's Algorithm 1 -------------------------------------------

    def m_step(
        self, atoms: NDArray, counts: NDArray, mass: float, ridge: NDArray | None = None
    ) -> NDArray:
        """Atoms in proportion to counts + α − 1, of which one unit counts as `mass`.

        A ridge (K, I) adds −½ ridge θ² to what is maximised. A component without any counts tells
        nothing about its atoms, and keeps those it has.
        """
        counts = counts + (self.shape - 1) / mass
        if ridge is None:
            updated = normalise(counts, self.floor)
        else:
            updated = normalise_with_ridge(counts, ridge)
        dead = ~(np.sum(np.maximum(counts, 0), axis=AXES) > NOTHING)
        updated[:, dead] = atoms[:, dead]
        return updated.astype(atoms.dtype, copy=False)

    def log_density(self, atoms: NDArray) -> float:
        """Σ (α − 1) ln θ: the log-density, constants dropped."""
        if self.is_flat:
            return 0.0
        with np.errstate(divide="ignore"):
            logarithm = np.log(atoms.astype(np.float64))
        return float(np.sum((self.shape - 1) * np.where(self.shape == 1, 0.0, logarithm)))

    # --- variational Bayes: the paper's Algorithm 2 ----------------------------------------------

    def posterior(self, counts: NDArray) -> NDArray:
        """Shapes α̂ = counts + α."""
        return counts + self.shape

    def geometric_means(self, shape: NDArray) -> tuple[NDArray, float]:
        """h = exp(ψ(α̂) − ψ(Σα̂)), and the posterior's part of the bound (g_θ of the appendix).

        To that part `bound_constant` belongs.
        """
        posterior = shape.astype(np.float64)
        total = posterior.sum(axis=AXES, keepdims=True)
        log_atoms = digamma(posterior) - digamma(total)
        entropy = np.sum(gammaln(posterior) - (posterior - self.shape) * log_atoms)
        term = float(entropy - np.sum(gammaln(total)))
        return np.exp(log_atoms).astype(shape.dtype, copy=False), term

    def bound_constant(self, shape: tuple[int, ...]) -> float:
        """The part of the bound that depends on the prior alone, for atoms of this shape."""
        alpha = np.broadcast_to(self.shape, shape)
        return gammaln(alpha.sum(axis=AXES)).sum() - gammaln(alpha).sum()

    # --- draws ---------------------------------------------------------------------------------

    def draw(self, random: RandomState, n: int) -> NDArray:
        """Draws (n, 2, K, I)."""
        shape = self.shape.astype(np.float64)
        return draw_dirichlet(np.broadcast_to(shape, (n, *shape.shape)), random, axes=(1, 3))


# Newton steps for the sum of atoms with a ridge: they come from one side, and few are needed.
_MOST_STEPS, _PRECISION = 100, 1e-13


def normalise_with_ridge(counts: NDArray, ridge: NDArray) -> NDArray:
    """Maximise Σ c ln θ − ½ r θ² over θ ≥ 0 with Σ_si θ = 1.

    θ = 2 c / (ν + √(ν² + 4 c r)) for one ν of each component. Its sum is convex and falls with ν,
    so that Newton's method rises from the left to where it is 1.
    """
    counts = np.maximum(counts, 0)
    total = counts.sum(axis=AXES, keepdims=True)
    unit = np.where(total > NOTHING, total, 1)
    counts, ridge = counts / unit, ridge / unit
    ν = 1 - ridge.max(axis=-1, keepdims=True)
    for _ in range(_MOST_STEPS):
        root = np.sqrt(ν * ν + 4 * counts * ridge)
        # The denominator of a ν below 0 cancels, unless it is written the other way round.
        atoms = np.where(
            ν > 0,
            2 * counts / np.maximum(ν + root, NOTHING),
            (root - ν) / np.maximum(2 * ridge, NOTHING),
        )
        atoms = np.where(counts > 0, atoms, 0)
        excess = atoms.sum(axis=AXES, keepdims=True) - 1
        if np.all(excess <= _PRECISION):
            break
        slope = (atoms / np.maximum(root, NOTHING)).sum(axis=AXES, keepdims=True)
        ν = ν + np.maximum(excess, 0) / np.maximum(slope, NOTHING)
    return normalise(atoms)


def normalise(counts: NDArray, floor: float = 0.0) -> NDArray:
    """Maximise Σ c ln θ over θ ≥ floor with Σ_si θ = 1: θ = max(c / ν, floor), for one ν.

    A floor that is applied before the division by the sum would move, and the objective with it.
    """
    counts = np.maximum(counts, 0)
    if floor == 0:
        total = counts.sum(axis=AXES, keepdims=True)
        return counts / np.where(total > NOTHING, total, 1)
    bound = np.zeros(counts.shape, dtype=bool)
    while True:
        free_mass = 1 - floor * np.sum(bound, axis=AXES, keepdims=True)
        total = np.sum(np.where(bound, 0, counts), axis=AXES, keepdims=True)
        atoms = np.where(bound, floor, counts * (free_mass / np.where(total > NOTHING, total, 1)))
        below = ~bound & (atoms < floor)
        if not below.any():
            return atoms
        bound |= below
