"""Print the polynomials of `seminmf/_numerics/elementary.py`.

Interpolation at Chebyshev nodes in many digits is within a small factor of the minimax error.
"""

from collections.abc import Callable

import mpmath

mpmath.mp.dps = 60
SQRT2 = mpmath.sqrt(2)


def log_tail(y: mpmath.mpf) -> mpmath.mpf:
    """(2 atanh(w) - 2 w) / w^3 as a function of y = w^2."""
    return mpmath.nsum(lambda k: 2 * y**k / (2 * k + 3), [0, mpmath.inf])


def exp_tail(r: mpmath.mpf) -> mpmath.mpf:
    """(e^r - 1 - r) / r^2."""
    return mpmath.nsum(lambda k: r**k / mpmath.factorial(k + 2), [0, mpmath.inf])


def interpolate(
    function: Callable[[mpmath.mpf], mpmath.mpf], low: mpmath.mpf, high: mpmath.mpf, degree: int
) -> tuple[list[float], float]:
    """Coefficients, constant term first, and the largest relative error before rounding."""
    nodes = [
        (low + high) / 2 + (high - low) / 2 * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * degree + 2))
        for k in range(degree + 1)
    ]
    vandermonde = mpmath.matrix([[node**k for k in range(degree + 1)] for node in nodes])
    solution = list(mpmath.lu_solve(vandermonde, mpmath.matrix([function(x) for x in nodes])))
    error = max(
        abs(mpmath.polyval(solution[::-1], x) / function(x) - 1)
        for x in mpmath.linspace(low, high, 101)
    )
    return [float(c) for c in solution], float(error)


def main() -> None:
    """Print each table with its error."""
    edge = ((SQRT2 - 1) / (SQRT2 + 1)) ** 2
    half = mpmath.log(2) / 2 * mpmath.mpf("1.001")
    for name, function, low, high, degrees in (
        ("log_tail", log_tail, mpmath.mpf(0), edge, (3, 7)),
        ("exp_tail", exp_tail, -half, half, (4, 9)),
    ):
        for degree in degrees:
            coefficients, error = interpolate(function, low, high, degree)
            print(f"{name}, degree {degree}, relative error {error:.1e}")
            for coefficient in coefficients:
                print(f"    {coefficient!r},")


if __name__ == "__main__":
    main()
