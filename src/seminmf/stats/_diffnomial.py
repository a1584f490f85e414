"""The diffnomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._numerics import loops
from .._numerics.elementwise import elementwise, require
from ._arguments import finite, generator, possible, shares, source_rates
from ._bessel import draw_smaller_totals, matching_rates
from ._skellam import skellam

# Beyond 2^53 float64 does not tell neighbouring integers apart.
_LARGEST_TOTAL = 2.0**53


class Diffnomial:
    """Poisson sources of both signs, given their signed sum.

    If ``Z[s, n]`` are independent Poisson variables with the rates ``rates[s, n]``, this is their
    distribution given ``x = Z[0].sum() - Z[1].sum()`` (paper, eq. diffnomial). With all
    ``rates[1] = 0`` it is the multinomial distribution. All methods broadcast over the leading axes
    ``...``, and refuse an `x` that the rates make impossible.

    Methods
    -------
    logpmf(z, x, rates), pmf(z, x, rates)
        Probability of the sources `z`.
    mean(x, rates)
        Mean of each source.
    rvs(x, rates, size=None, random_state=None)
        Random variates.

    Examples
    --------
    >>> from seminmf.stats import diffnomial
    >>> rates = [[1.0, 2.0], [0.5, 0.5]]
    >>> diffnomial.pmf([[1, 2], [0, 0]], 3, rates).round(6)
    np.float64(0.220367)
    >>> diffnomial.rvs(3, rates, random_state=0).sum(axis=-1)
    array([4, 1])
    """

    def logpmf(self, z: ArrayLike, x: ArrayLike, rates: ArrayLike) -> Any:
        """Logarithm of the probability of the sources `z`.

        Parameters
        ----------
        z : array_like of shape (..., 2, N)
            Counts of the sources.
        x : array_like
            Their signed sum.
        rates : array_like of shape (..., 2, N)
            Rates of the sources, finite and >= 0.

        Returns
        -------
        ndarray or scalar
            -inf where `z` is impossible: counts that are negative or no integers, whose signed sum
            is not `x`, or without a rate.
        """
        x, rates, totals = _conditioned(x, rates)
        z = np.asarray(finite("z", z))
        if z.ndim < 2 or z.shape[-2] != 2:
            raise ValueError(f"z must have the shape (..., 2, N); found {z.shape}.")
        # Bayes' rule: the sources determine x, so that their joint probability is that of z.
        joint = elementwise(loops.skellam_log_pmf, z, rates, 0.0).sum(axis=(-2, -1))
        matches = z[..., 0, :].sum(axis=-1) - z[..., 1, :].sum(axis=-1) == x
        condition = skellam.logpmf(np.rint(x), totals[..., 0], totals[..., 1])
        return np.where(matches, joint - condition, -np.inf)[()]

    def pmf(self, z: ArrayLike, x: ArrayLike, rates: ArrayLike) -> Any:
        """Probability of the sources `z`; arguments as for `logpmf`."""
        return np.exp(self.logpmf(z, x, rates))

    def mean(self, x: ArrayLike, rates: ArrayLike) -> Any:
        """Mean of each source, of shape (..., 2, N): `skellam.source_mean`."""
        return skellam.source_mean(x, rates)

    def rvs(
        self,
        x: ArrayLike,
        rates: ArrayLike,
        size: int | tuple[int, ...] | None = None,
        random_state: Any = None,
    ) -> NDArray[np.int64]:
        """Draw sources, exactly.

        The smaller of the two sums is a Bessel variable, the larger is ``abs(x)`` more, and each is
        shared out among its sources by a multinomial draw.

        Parameters
        ----------
        x : array_like of int
            Signed sum of the sources.
        rates : array_like of shape (..., 2, N)
            Rates of the sources, finite and >= 0.
        size : int or tuple of int, default=None
            Leading shape of the result, to which `x` and ``...`` broadcast; None takes theirs.
        random_state : int, RandomState, Generator or None, default=None
            Source of randomness.

        Returns
        -------
        ndarray of int64 of shape (..., 2, N) or size + (2, N)
        """
        given, rates, totals = _conditioned(x, rates)
        require("x", given, given == np.rint(given), "integer")
        shape = np.broadcast_shapes(np.shape(given), totals.shape[:-1])
        if size is not None:
            shape = np.broadcast_shapes(shape, size)
        order = np.broadcast_to(np.abs(given), shape).astype(np.float64).ravel()
        mean = np.broadcast_to(np.sqrt(totals).prod(axis=-1), shape).astype(np.float64).ravel()
        largest = matching_rates(order, mean)[0].max(initial=0.0)
        if largest > _LARGEST_TOTAL:
            raise ValueError(f"x and rates must give sums below 2^53; found {largest:.6g}.")
        rng = generator(random_state)
        smaller = draw_smaller_totals(order, mean, rng).reshape(shape)
        excess = np.stack([np.maximum(given, 0), np.maximum(-given, 0)], axis=-1)
        return rng.multinomial(smaller[..., None] + excess.astype(np.int64), shares(rates, totals))


def _conditioned(x: ArrayLike, rates: ArrayLike) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    """x, rates under which it is possible, and their totals (..., 2)."""
    x, rates = finite("x", x), source_rates(rates)
    if np.isnan(x).any() or np.isnan(rates).any():
        raise ValueError("x and rates must be numbers; found NaN.")
    totals = rates.sum(axis=-1, dtype=np.float64)
    possible(x, totals)
    return x, rates, totals


diffnomial = Diffnomial()
