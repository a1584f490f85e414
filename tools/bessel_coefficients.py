"""Print the tables of `seminmf/_numerics/bessel.py`.

With s = sqrt(nu^2 + z^2), t = 1/s and q = (nu/s)^2, the logarithmic derivative
Y = z I_nu'(z) / I_nu(z) is s (1 + c_1 t + c_2 t^2 + ...). A step d/d(ln z) multiplies s by 1 - q
and q by -2 (1 - q), so that the Riccati equation z Y' = z^2 + nu^2 - Y^2 gives, order by order,

    c_m = -1/2 ( (1 - q) ((2 - m) c_{m-1} - 2 q c_{m-1}') + sum_{0<i<m} c_i c_{m-i} ),   c_0 = 1.

Each c_m has the factor 1 - q = (z/s)^2, and c_m / (1 - q) makes the series `ratio`. Integration
over ln z gives the logarithm of Debye's series, `debye`: its coefficient of t^m q^j is that of
t^(m+1) q^j in `ratio`, divided by -(m + 2 j).

These series are exact but diverge. Polynomials of the same form that are fitted for all orders
above the N of the library, and for all arguments, do hundreds of times better at the same price.
`ratio` is fitted to the error that is left after the recurrence, which damps most of it; `debye`
then takes up what the recurrence makes of the error of `ratio`.
"""

import textwrap
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import mpmath
from mpmath import mpf

mpmath.mp.dps = 45

Polynomial = list[Fraction]
Series = list[list[mpf]]

RAISE, TERMS = 40, 25  # the exact series at orders above 40: more than 30 digits


def product(a: Polynomial, b: Polynomial) -> Polynomial:
    """Product of two polynomials."""
    result = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return result


def total(*terms: Polynomial) -> Polynomial:
    """Sum of polynomials of any degrees."""
    length = max(map(len, terms))
    return [sum((p[j] for p in terms if j < len(p)), Fraction(0)) for j in range(length)]


def divide(polynomial: Polynomial) -> Polynomial:
    """Quotient by 1 - q, which must leave no remainder."""
    quotient: Polynomial = []
    carry = Fraction(0)
    for coefficient in polynomial:
        carry += coefficient
        quotient.append(carry)
    if quotient.pop() != 0:
        raise ArithmeticError("1 - q does not divide the polynomial")
    return quotient


def expansion(order: int) -> tuple[list[Polynomial], list[Polynomial]]:
    """`ratio` and `debye` for m = 1 to `order`, exactly."""
    one_minus_q = [Fraction(1), Fraction(-1)]
    c: list[Polynomial] = [[Fraction(1)]]
    for m in range(1, order + 2):
        flow = [(2 - m - 2 * j) * coefficient for j, coefficient in enumerate(c[m - 1])]
        squares = (product(c[i], c[m - i]) for i in range(1, m))
        c.append([-term / 2 for term in total(product(one_minus_q, flow), *squares)])
    ratio = [divide(polynomial) for polynomial in c[1:]]
    debye = [
        [-coefficient / (m + 2 * j) for j, coefficient in enumerate(ratio[m])]
        for m in range(1, order + 1)
    ]
    return ratio[:order], debye


def evaluate(series: Series, t: mpf, q: mpf) -> mpf:
    """Sum over m >= 1 of t^m times a polynomial in q."""
    return mpmath.fsum(t**m * mpmath.polyval(row[::-1], q) for m, row in enumerate(series, start=1))


class Point(NamedTuple):
    """A raised order nu and an argument z, with what the library makes of them."""

    nu: mpf
    z: mpf
    s: mpf

    @property
    def t(self) -> mpf:
        return 1 / self.s

    @property
    def q(self) -> mpf:
        return (self.nu / self.s) ** 2


def point(nu: mpf, z: mpf) -> Point:
    """Point of an order and an argument."""
    return Point(nu, z, mpmath.sqrt(nu**2 + z**2))


def recur(at: Point, ratio: mpf, steps: int) -> tuple[mpf, mpf]:
    """Scaled B_0 and B_1 below `at`, from the value of `ratio` there."""
    h = at.nu + at.s
    g = (at.z / h) ** 2
    a, b0, b1 = g * (1 + (1 + at.nu / at.s) * ratio), mpf(1), mpf(0)
    for k in range(steps):
        a, b0, b1 = g * b0, 2 * (at.nu - k) / h * b0 + a, b0
    return b0, b1


def reference(at: Point, ratio: Series, debye: Series) -> tuple[mpf, mpf]:
    """Values of `ratio` and `debye` at a point, from the exact series at a much larger order."""
    above = point(at.nu + RAISE, at.z)
    b0, b1 = recur(above, evaluate(ratio, above.t, above.q), RAISE)
    h, h_above = at.nu + at.s, above.nu + above.s
    # P_nu / h = g h_above B_1 / (h B_0) in the scaling of `above`; see bessel.py.
    scaled = (at.z / h_above) ** 2 * h_above / h * b1 / b0
    exact_ratio = (scaled / (at.z / h) ** 2 - 1) / (1 + at.nu / at.s)
    w = RAISE / (at.s + above.s)
    exact_debye = (
        RAISE * w
        - 2 * at.nu * (mpmath.atanh(w) - w)
        + mpmath.log(b0)
        + mpmath.log(at.s / above.s) / 2
        + evaluate(debye, above.t, above.q)
    )
    return exact_ratio, exact_debye


def grid(lowest_order: int, count: int) -> list[Point]:
    """Chebyshev nodes in lowest_order / nu and in nu / s, both of (0, 1), and the edge at 1."""
    nodes = [(1 - mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * count))) / 2 for k in range(count)]
    orders = [lowest_order / x for x in [*nodes, mpf(1)]]
    cosines = [*nodes, 1 - mpf(10) ** -14]
    return [point(nu, nu * mpmath.sqrt(1 / p**2 - 1)) for nu in orders for p in cosines]


def fit(
    points: list[Point],
    monomials: list[tuple[int, int]],
    target: list[mpf],
    weight: list[mpf],
    rounds: int = 4,
) -> tuple[list[mpf], mpf]:
    """Coefficients of t^m q^j with nearly the least maximal error (Lawson's weights)."""
    rows = [
        [w * at.t**m * at.q**j for m, j in monomials] for at, w in zip(points, weight, strict=True)
    ]
    design = mpmath.matrix(rows)
    right = mpmath.matrix([w * y for w, y in zip(weight, target, strict=True)])
    lawson = [mpf(1)] * len(points)
    best: tuple[list[mpf], mpf] = ([], mpf("inf"))
    for _ in range(rounds):
        weighted = mpmath.matrix(
            [[lam * x for x in row] for lam, row in zip(lawson, rows, strict=True)]
        ).T
        solution = mpmath.lu_solve(weighted * design, weighted * right)
        residual = [abs(x) for x in design * solution - right]
        best = min(best, (list(solution), max(residual)), key=lambda pair: pair[1])
        lawson = [lam * r for lam, r in zip(lawson, residual, strict=True)]
        mean = mpmath.fsum(lawson) / len(lawson)
        lawson = [lam / mean + mpf(10) ** -12 for lam in lawson]
    return best


def table(monomials: list[tuple[int, int]], coefficients: list[mpf]) -> Series:
    """Rows by power of t."""
    rows: Series = [[] for _ in range(monomials[-1][0])]
    for (m, _), coefficient in zip(monomials, coefficients, strict=True):
        rows[m - 1].append(coefficient)
    return rows


def tables(steps: int, ratio_terms: int, debye_terms: int) -> tuple[Series, Series, float, float]:
    """Both tables for orders above `steps`, and the errors of the two results."""
    exact_ratio, exact_debye = (
        [[mpf(c.numerator) / c.denominator for c in row] for row in series]
        for series in expansion(TERMS)
    )
    points = grid(steps, 12 if steps < 10 else 16)
    values = [reference(at, exact_ratio, exact_debye) for at in points]
    exact = [recur(at, value, steps) for at, (value, _) in zip(points, values, strict=True)]

    def after(change: Callable[[Point, mpf], mpf]) -> list[tuple[mpf, mpf]]:
        """Relative change of B_1 / B_0 and of B_0 when the value of `ratio` changes."""
        changes = []
        for at, (value, _), (b0, b1) in zip(points, values, exact, strict=True):
            c0, c1 = recur(at, change(at, value), steps)
            changes.append((c1 / c0 * b0 / b1 - 1, c0 / b0))
        return changes

    tiny = mpf(10) ** -20
    damping = [abs(change / tiny) for change, _ in after(lambda at, value: value + tiny)]
    monomials = [(m, j) for m in range(1, ratio_terms + 1) for j in range(m)]
    fitted, ratio_error = fit(points, monomials, [value for value, _ in values], damping)
    ratio = table(monomials, fitted)

    carried = after(lambda at, value: evaluate(ratio, at.t, at.q))
    target = [value - mpmath.log(c) for (_, value), (_, c) in zip(values, carried, strict=True)]
    monomials = [(m, j) for m in range(1, debye_terms + 1) for j in range(m + 1)]
    fitted, debye_error = fit(points, monomials, target, [mpf(1)] * len(points))
    return ratio, table(monomials, fitted), float(ratio_error), float(debye_error)


def main() -> None:
    """Print the tables, constant term first, in float32 and float64."""
    for suffix, steps, sizes in (("SINGLE", 6, (3, 3)), ("DOUBLE", 12, (6, 8))):
        ratio, debye, *errors = tables(steps, *sizes)
        for name, series, error in zip(("RATIO", "DEBYE"), (ratio, debye), errors, strict=True):
            print(f"# N = {steps}, error {error:.0e}.")
            print(f"_{name}_{suffix} = (\n    (0.0,),")
            for row in series:
                text = f"({', '.join(repr(float(c)) for c in row)},),"
                print(textwrap.fill(text, 99, initial_indent=" " * 4, subsequent_indent=" " * 5))
            print(")")


if __name__ == "__main__":
    main()
