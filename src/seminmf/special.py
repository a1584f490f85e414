"""Special functions of the Skellam likelihood and of gamma posteriors.

All take and return arrays, broadcast, and let NaN through. float32 arrays give float32 results,
computed in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._numerics import loops
from ._numerics.elementwise import elementwise, nonnegative, real, require

__all__ = ["bessel_ratio", "exp_digamma", "inverse_digamma", "log_hyp0f1_regularized"]


def bessel_ratio(nu: ArrayLike, z: ArrayLike) -> Any:
    """Ratio of modified Bessel functions of the first kind, I_{nu+1}(z) / I_nu(z).

    Neither function is computed, so that neither overflows, and the relative accuracy is that of
    float64 for all orders and arguments.

    Parameters
    ----------
    nu, z : array_like
        Order and argument, finite and >= 0.

    Returns
    -------
    ndarray or scalar
        Values in [0, 1].

    Examples
    --------
    >>> from seminmf.special import bessel_ratio
    >>> bessel_ratio(0, 1.0).round(6)
    np.float64(0.44639)
    >>> bessel_ratio([0, 10, 1e6], 1e4).round(6)
    array([0.99995, 0.99895, 0.005  ])
    """
    ratio = elementwise(loops.bessel_ratio, nonnegative("nu", nu), nonnegative("z", z))
    return np.minimum(ratio, 1.0)  # which rounding goes beyond where z is large against nu


def log_hyp0f1_regularized(b: ArrayLike, z: ArrayLike) -> Any:
    """Logarithm of the regularized confluent hypergeometric limit function, 0F1(; b; z) / Gamma(b).

    The Skellam probability of x is this with b = abs(x) + 1 and z = rate0 rate1, times a power of
    the rates and an exponential. It equals ln I_n(2 sqrt(z)) - n ln(z) / 2 with n = b - 1.

    Parameters
    ----------
    b : array_like
        Parameter, finite and > 0.
    z : array_like
        Argument, finite and >= 0.

    Returns
    -------
    ndarray or scalar
        The logarithm, where the function itself may overflow.

    Examples
    --------
    >>> from seminmf.special import log_hyp0f1_regularized
    >>> log_hyp0f1_regularized([3, 5], 0.0).round(6)  # -ln 2!, -ln 4!
    array([-0.693147, -3.178054])
    >>> log_hyp0f1_regularized(1, 1e10).round(6)
    np.float64(199992.978026)
    """
    b = real("b", b)
    require("b", b, np.greater(b, 0) & np.isfinite(b), "finite and > 0")
    return elementwise(loops.log_hyp0f1_regularized, b, nonnegative("z", z))


def exp_digamma(x: ArrayLike) -> Any:
    """Exponential of the digamma function: the geometric mean of a standard gamma variable.

    Parameters
    ----------
    x : array_like
        Shape of the gamma distribution, >= 0.

    Returns
    -------
    ndarray or scalar
        Accurate to a few units in the last place, also where it is about to underflow.

    Examples
    --------
    >>> from seminmf.special import exp_digamma
    >>> exp_digamma([0, 0.01, 1, 100]).round(6)
    array([ 0.      ,  0.      ,  0.561459, 99.500419])
    """
    x = real("x", x)
    require("x", x, np.greater_equal(x, 0), ">= 0")
    return elementwise(loops.exp_digamma, x)


def inverse_digamma(y: ArrayLike) -> Any:
    """The x > 0 with digamma(x) = y.

    Parameters
    ----------
    y : array_like
        Any real numbers. Beyond 709.78 the result overflows to infinity.

    Returns
    -------
    ndarray or scalar
        Found by Newton's method from the start of [1]_, appendix C.

    References
    ----------
    .. [1] T. Minka, "Estimating a Dirichlet distribution", 2000.

    Examples
    --------
    >>> from scipy.special import digamma
    >>> from seminmf.special import inverse_digamma
    >>> inverse_digamma(digamma([0.001, 1.5, 1e6])).round(6)
    array([1.0e-03, 1.5e+00, 1.0e+06])
    """
    return elementwise(loops.inverse_digamma, real("y", y))
