"""The price of activations: how cells that were held back decide on it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from seminmf._estimators.price import PRICES, _highest, _log_likelihood

SIZES, COUNTS, ALL = np.array([1.0, 4.0, 9.0]), np.array([50.0, 60.0, 40.0]), np.ones(3, dtype=bool)
# Squared errors of two prices in three features.
SQUARES = np.array([[10.0, 80.0, 200.0], [12.0, 70.0, 190.0]])


def lead(squares=SQUARES, sizes=SIZES, counts=COUNTS, has_values=ALL):
    """Nats by which the second price is ahead of the first."""
    first, second = _log_likelihood(squares, sizes, counts, has_values)
    return second - first


def test_units_of_features_do_not_matter():
    units = np.array([1e-3, 1.0, 1e4])
    assert_allclose(lead(SQUARES * units**2, SIZES * units**2), lead())


def test_less_error_is_better():
    assert lead(np.stack([SQUARES[0], 0.9 * SQUARES[0]])) > 0


def test_a_feature_with_next_to_no_noise_does_not_decide():
    """Its errors are a million times less for one price: that is worth its own few cells."""
    squares = np.array([[1e-12, 80.0, 200.0], [1e-6, 60.0, 150.0]])
    assert lead(squares) > 0


def test_features_that_tell_nothing_are_left_out():
    nothing = np.array([True, False, True])
    assert lead(has_values=nothing) == lead(counts=COUNTS * nothing)
    assert np.isfinite(lead(np.zeros((2, 3))))


@pytest.mark.parametrize("best", range(len(PRICES)))
def test_the_best_price_is_found_from_the_first_one(best):
    """Uphill, whichever way that is, and no further than one beyond the best."""
    asked = []

    def nats(number):
        asked.append(number)
        return -abs(number - best)

    assert _highest(nats) == best
    assert len(asked) == len(set(asked)) and min(abs(np.array(asked) - best)) == 0
    assert max(asked) <= max(best + 1, asked[0] + 1) and min(asked) >= min(best - 1, asked[0] - 1)
