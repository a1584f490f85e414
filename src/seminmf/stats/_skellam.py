"""The Skellam distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._numerics import loops
from .._numerics.elementwise import elementwise, nonnegative, require, result_type
from ._arguments import (
    LARGEST_COUNT,
    finite,
    generator,
    mean_totals,
    possible,
    shares,
    source_rates,
)


class Skellam:
    """Difference of two independent Poisson variables.

    All methods broadcast. With ``rate1 = 0`` this is the Poisson distribution.

    Methods
    -------
    logpmf(x, rate0, rate1), pmf(x, rate0, rate1)
        Probability of `x`.
    mean(rate0, rate1), var(rate0, rate1)
        The difference and the sum of the rates.
    rvs(rate0, rate1, size=None, random_state=None)
        Random variates.
    source_mean(x, rates)
        Mean of each Poisson source given the difference of the sums.

    Examples
    --------
    >>> from seminmf.stats import skellam
    >>> skellam.pmf([-1, 0, 1], 2.0, 1.0).round(6)
    array([0.119232, 0.211712, 0.238463])
    >>> skellam.logpmf(1, 1e12, 1e12).round(6)
    np.float64(-15.081023)
    """

    def logpmf(self, x: ArrayLike, rate0: ArrayLike, rate1: ArrayLike) -> Any:
        """Logarithm of the probability of `x` (paper, eq. Skellam-distribution).

        Parameters
        ----------
        x : array_like
            Finite numbers; what is not an integer has the probability 0.
        rate0, rate1 : array_like
            Rates of the two Poisson variables, finite and >= 0.

        Returns
        -------
        ndarray or scalar
            -inf where `x` is impossible. The relative accuracy does not depend on the size of the
            rates.
        """
        rate0, rate1 = nonnegative("rate0", rate0), nonnegative("rate1", rate1)
        return elementwise(loops.skellam_log_pmf, finite("x", x), rate0, rate1)

    def pmf(self, x: ArrayLike, rate0: ArrayLike, rate1: ArrayLike) -> Any:
        """Probability of `x`; arguments as for `logpmf`."""
        return np.exp(self.logpmf(x, rate0, rate1))

    def mean(self, rate0: ArrayLike, rate1: ArrayLike) -> Any:
        """Mean, ``rate0 - rate1``."""
        return np.subtract(nonnegative("rate0", rate0), nonnegative("rate1", rate1))[()]

    def var(self, rate0: ArrayLike, rate1: ArrayLike) -> Any:
        """Variance, ``rate0 + rate1``."""
        return np.add(nonnegative("rate0", rate0), nonnegative("rate1", rate1))[()]

    def rvs(
        self,
        rate0: ArrayLike,
        rate1: ArrayLike,
        size: int | tuple[int, ...] | None = None,
        random_state: Any = None,
    ) -> Any:
        """Draw random variates.

        Parameters
        ----------
        rate0, rate1 : array_like
            Rates, >= 0 and at most 9e18, where 64-bit integers end.
        size : int or tuple of int, default=None
            Shape of the result; None takes that of the rates.
        random_state : int, RandomState, Generator or None, default=None
            Source of randomness.

        Returns
        -------
        ndarray of int64 or int
        """
        rates = nonnegative("rate0", rate0), nonnegative("rate1", rate1)
        for name, rate in zip(("rate0", "rate1"), rates, strict=True):
            require(name, rate, np.less_equal(rate, LARGEST_COUNT), "at most 9e18")
        shape = np.broadcast_shapes(*map(np.shape, rates)) if size is None else size
        rng = generator(random_state)
        return rng.poisson(rates[0], shape) - rng.poisson(rates[1], shape)

    def source_mean(self, x: ArrayLike, rates: ArrayLike) -> Any:
        """Mean of the Poisson sources given that their signed sum is `x`.

        The first row of sources counts positively, the second negatively (paper,
        eq. Posterior-Expectation).

        Parameters
        ----------
        x : array_like
            Observed difference. Numbers that are not integers are taken as they come.
        rates : array_like of shape (..., 2, N)
            Rates of the sources, >= 0; ``...`` broadcasts with `x`.

        Returns
        -------
        ndarray of shape (..., 2, N)
            The first row's sum less the second row's is `x`.

        Examples
        --------
        >>> from seminmf.stats import skellam
        >>> skellam.source_mean(3, [[1.0, 2.0], [0.5, 0.5]]).round(6)
        array([[1.219847, 2.439693],
               [0.32977 , 0.32977 ]])
        """
        given, rates = finite("x", x), source_rates(rates)
        totals = rates.sum(axis=-1, dtype=np.float64)
        possible(given, totals)
        means = shares(rates, totals) * mean_totals(given, totals)[..., None]
        return means.astype(result_type(given, rates), copy=False)


skellam = Skellam()
