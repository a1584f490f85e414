"""Bessel functions in many digits, by other means than the library's."""

from functools import cache

import mpmath
from mpmath import mpf


@cache
def debye_polynomials(count=16):
    """Debye's polynomials U_k as {power: coefficient}, by Olver's recurrence."""
    polynomials = [{0: mpf(1)}]
    with mpmath.workdps(60):
        for _ in range(count):
            following: dict[int, mpf] = {}
            for power, c in polynomials[-1].items():
                for change, factor in (
                    (1, mpf(power) / 2 + mpf(1) / (8 * (power + 1))),
                    (3, -mpf(power) / 2 - mpf(5) / (8 * (power + 3))),
                ):
                    following[power + change] = following.get(power + change, 0) + factor * c
            polynomials.append(following)
    return polynomials


def log_bessel_by_expansion(nu, z):
    """ln I_nu(z) for large nu^2 + z^2."""
    s = mpmath.sqrt(nu**2 + z**2)
    p = nu / s
    series = mpmath.fsum(
        c * p ** (power - k) / s**k
        for k, polynomial in enumerate(debye_polynomials())
        for power, c in polynomial.items()
    )
    leading = s - nu * mpmath.log((nu + s) / z)
    return leading - mpmath.log(2 * mpmath.pi * s) / 2 + mpmath.log(series)


def log_bessel(nu, z):
    """ln I_nu(z), by the power series where it is short."""
    nu, z = mpf(nu), mpf(z)
    if nu**2 + z**2 > 150**2:
        return log_bessel_by_expansion(nu, z)
    return mpmath.log(mpmath.besseli(nu, z, maxterms=10**6))
