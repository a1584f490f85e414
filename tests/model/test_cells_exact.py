"""U and ln P of cells with finite dispersion against many digits, whatever the order."""

from itertools import product

import mpmath
import numpy as np
import pytest
from exact import log_bessel
from mpmath import mpf

from seminmf._kernels.em.estep import evaluate_rates
from seminmf._model.likelihoods import Dispersed, DispersedLarge, DispersedMedium
from seminmf._numerics.bessel import LARGE, MEDIUM

# Of max(1, |value|). What is promised is 1e-12.
TOLERANCE = 3e-13
RULES = [(Dispersed, 0.0), (DispersedMedium, MEDIUM), (DispersedLarge, LARGE)]

# Orders and arguments on both sides of what is expanded in another way, and far from it.
ORDERS = [0.0, 1e-9, 0.3, 1.0, 11.99, 12.0, 59.99, 60.01, 599.9, 600.1, 1e5, 1e8 + 0.5, 1e12]
ARGUMENTS = [1e-8, 1e-3, 0.7, 20.0, 59.99, 60.01, 599.9, 600.1, 1e5, 1e9, 1e12]


def exactly(size, side, other):
    """U on the side of x's sign, on the other side, and ln P."""
    with mpmath.workdps(60):
        n, a, b = (mpf(float(part)) for part in (size, side, other))
        z = 2 * mpmath.sqrt(a * b)
        at_order, above = log_bessel(n, z), log_bessel(n + 1, z)
        ratio, tilt = mpmath.exp(above - at_order), mpmath.sqrt(a / b)
        value = n * mpmath.log(tilt) + at_order - (a + b)
        return (ratio + 2 * n / z) / tilt, ratio * tilt, value


def assert_exact(size, side, other):
    """In float64, both signs of x, by every rule that is for such cells."""
    wanted = [exactly(*cell) for cell in zip(size, side, other, strict=True)]
    roots = np.sqrt(size**2 + 4 * side * other)
    for (kind, least), sign in product(RULES, (1, -1)):
        x, (u0, u1) = sign * size, (part.copy() for part in (side, other)[::sign])
        evaluate_rates(kind.of(1.0), x, u0, u1)
        u_side, u_other = (u0, u1)[::sign]
        for cell in np.flatnonzero(roots >= least):
            for name, found in (("U_a", u_side), ("U_b", u_other), ("ln P", x)):
                exact = wanted[cell][("U_a", "U_b", "ln P").index(name)]
                error = abs(mpf(float(found[cell])) - exact) / max(1, abs(exact))
                place = f"{kind.__name__} {name} at {size[cell]}, {side[cell]}, {other[cell]}"
                assert error <= TOLERANCE, f"{place}: {float(error)}"


def fitted_rates(size, argument):
    """Rates of a product z² / 4 whose difference is x."""
    side = (size + np.hypot(size, argument)) / 2
    return side, argument**2 / (4 * side)


def draw(n, seed):
    """Orders to 1e12 and arguments from 1e-8, near a fit and far from it, and |x| next to r."""
    random = np.random.default_rng(seed)
    argument = 10 ** random.uniform(-8, 12, n)
    size = 10 ** random.uniform(-3, 12, n)
    size = np.where(random.random(n) < 0.1, 0.0, size)
    near = random.random(n) < 0.3
    size = np.where(near, np.minimum(argument * 10 ** random.uniform(-2, 4, n), 1e12), size)
    side, other = fitted_rates(size, argument)
    tilt, rise = (
        np.exp(random.choice(scales, n) * random.normal(size=n))
        for scales in ([0, 1e-6, 1e-3, 0.5, 5], [0, 1e-3, 1])
    )
    return size, side * tilt * rise, other / tilt


@pytest.mark.parametrize("tilt", [1.0, 1.001, 7.0])
def test_cells_on_both_sides_of_every_seam(tilt):
    pairs = list(product(ORDERS, ARGUMENTS))
    # A third of the pairs for each tilt, so that it takes no time.
    place = [1.0, 1.001, 7.0].index(tilt)
    size, argument = np.array(pairs[place::3]).T
    side, other = fitted_rates(size, argument)
    assert_exact(size, side * tilt, other / tilt)


def test_cells_of_any_size():
    assert_exact(*draw(60, seed=0))


@pytest.mark.slow
@pytest.mark.parametrize("tilt", [1.0, 1 + 1e-9, 1.001, 0.999, 7.0, 1 / 7.0, 1e3])
def test_cells_on_all_seams(tilt):
    size, argument = np.array(list(product(ORDERS, ARGUMENTS))).T
    side, other = fitted_rates(size, argument)
    assert_exact(size, side * tilt, other / tilt)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_many_cells_of_any_size(seed):
    assert_exact(*draw(600, seed))
