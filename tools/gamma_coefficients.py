"""Print the tables of `seminmf/_numerics/gamma.py`, exactly.

With u = 1/v^2, digamma(v + 1/2) = ln v + b(u), b_k = (1 - 2^(1-2k)) B_2k / (2k): the expansion
around v + 1/2 rather than v has no even powers, and its terms are smaller.
"""

from fractions import Fraction

import mpmath

TERMS = 6


def digamma_series(terms: int) -> list[Fraction]:
    """b_1 to b_terms."""
    return [
        (1 - Fraction(2) ** (1 - 2 * k)) * Fraction(*mpmath.bernfrac(2 * k)) / (2 * k)
        for k in range(1, terms + 1)
    ]


def exponential(b: list[Fraction]) -> list[Fraction]:
    """Coefficients 0 to len(b) of exp(b_1 u + b_2 u^2 + ...)."""
    e = [Fraction(1)]
    for k in range(1, len(b) + 1):  # k e_k = sum of j b_j e_{k-j}
        e.append(sum((j * b[j - 1] * e[k - j] for j in range(1, k + 1)), Fraction(0)) / k)
    return e


def main() -> None:
    """Print the three tables."""
    b = digamma_series(TERMS)
    entropy = [-2 * k * b_k / (2 * k - 1) for k, b_k in enumerate(b, start=1)]
    for name, table in (
        ("_DIGAMMA", [Fraction(0), *b]),
        ("_EXP_DIGAMMA", exponential(b)),
        ("_ENTROPY", entropy),
    ):
        print(f"{name} = (")
        for c in table:
            print(f"    {c.numerator} / {c.denominator},")
        print(")")


if __name__ == "__main__":
    main()
