"""The Skellam divergence, the loss of the real likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._numerics import loops
from ._numerics.elementwise import elementwise, nonnegative, real, require

__all__ = ["skellam_divergence"]


def skellam_divergence(x: ArrayLike, rate0: ArrayLike, rate1: ArrayLike) -> Any:
    """Divergence of a real number from the difference of two rates.

    It is the limit, for many repetitions, of the negative Skellam log-likelihood of a mean of
    observations, and the least Kullback-Leibler cost of explaining `x` as a difference:

    ``D(x | rate0, rate1) = min KL(z0 | rate0) + KL(z1 | rate1)`` over ``z0 - z1 = x``, with
    ``KL(z | rate) = z ln(z / rate) - z + rate``.

    It is jointly convex, homogeneous of degree 1, and 0 just where ``x = rate0 - rate1``. Unlike
    the formula below, the code keeps its relative accuracy there.

    Parameters
    ----------
    x : array_like
        Observations: finite real numbers. NaN gives NaN.
    rate0, rate1 : array_like
        Rates of the positive and of the negative part: finite and >= 0.

    Returns
    -------
    ndarray or scalar
        Values >= 0 of the broadcast shape; infinite where `x` has a sign whose rate is 0.

    Notes
    -----
    With ``r = sqrt(x^2 + 4 rate0 rate1)`` and ``rate`` the one of the sign of `x`,
    ``D = abs(x) ln((abs(x) + r) / (2 rate)) + rate0 + rate1 - r``.

    Examples
    --------
    >>> from seminmf import skellam_divergence
    >>> skellam_divergence([-1.0, 0.0, 1.0], 2.0, 1.0).round(6)
    array([0.693147, 0.171573, 0.      ])
    >>> skellam_divergence(1.0 + 1e-9, 2.0, 1.0)  # about 1e-18 / (2 * 3)
    np.float64(1.666666...e-19)
    """
    x = real("x", x)
    require("x", x, np.isfinite(x), "finite")
    rate0, rate1 = nonnegative("rate0", rate0), nonnegative("rate1", rate1)
    return elementwise(loops.skellam_divergence, x, rate0, rate1)
