"""The likelihoods: each answers all that is asked of it, and its answers belong together."""

import numpy as np
import pytest
from numba.core.errors import TypingError
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad

from seminmf._kernels.em.estep import evaluate_cells, evaluate_rates
from seminmf._model.likelihoods import LIKELIHOODS, Integer, Likelihood, Real

RATES = [(30.0, 20.0), (4.0, 40.0), (25.0, 25.0)]
DISPERSIONS = {"real": (0.1, 1.0), "integer": (1.0,)}
CASES = [(name, phi) for name in LIKELIHOODS for phi in DISPERSIONS[name]]


def log_density(likelihood, x, rate0, rate1):
    rates = np.full(np.shape(x), rate0), np.full(np.shape(x), rate1)
    cells = evaluate_cells(likelihood.in_unit_of_data(), x, *rates)
    return likelihood.log_density(cells.log_likelihood, x, *rates)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_each_answers_all_that_is_asked(name):
    kind = LIKELIHOODS[name]
    for question in Likelihood.__annotations__:
        assert hasattr(kind, question), question
    likelihood = kind(unit=kind.unit_for(40.0))
    x, rates = np.array([-2.0, 0.0, np.nan, 3.0]), np.array([[1.0, 2.0, 3.0, 4.0]] * 2)
    assert likelihood.cell_units(x, *rates).shape == x.shape
    assert np.isfinite(log_density(likelihood, x[~np.isnan(x)], 1.0, 2.0)).all()
    assert likelihood.draw(*rates, np.random.RandomState(0)).shape == x.shape


def test_the_base_answers_nothing():
    x = np.ones(3)
    for ask in (
        lambda: Likelihood.unit_for(1.0),
        lambda: Likelihood().cell_units(x, x, x),
        lambda: Likelihood().log_density(x, x, x, x),
        lambda: Likelihood().draw(x, x, np.random.RandomState(0)),
    ):
        with pytest.raises(NotImplementedError):
            ask()


class Bare(Likelihood):
    """A likelihood that somebody forgot to give a rule for its cells."""

    __slots__ = ()


def test_a_class_without_a_rule_for_its_cells_is_no_likelihood_of_a_kernel():
    x = np.ones(3)
    with pytest.raises(TypingError, match="Bare has no cell_rule"):
        evaluate_rates(Bare(), x, x.copy(), x.copy())


# --- units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [1e-300, 0.7, 1.0, 3.0, 1e6, 1e300])
def test_real_numbers_are_not_rounded_in_their_unit(largest):
    unit = Real.unit_for(largest)
    assert 1 <= largest / unit < 2
    assert np.log2(unit) == np.round(np.log2(unit))


def test_the_unit_of_integers_is_part_of_the_model():
    assert {Integer.unit_for(largest) for largest in (0.0, 3.0, 1e9)} == {1.0}


def test_mass_is_the_unit_in_units_of_the_noise():
    likelihood = Real(unit=8.0, dispersion=0.5)
    assert likelihood.mass == 16.0
    assert likelihood.in_unit_of_data() == Real(unit=1.0, dispersion=0.5)
    assert isinstance(likelihood.in_unit_of_data(), Real)


# --- densities and draws --------------------------------------------------------------------------


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize(("name", "dispersion"), CASES)
def test_draws_have_mean_and_variance_of_the_model(name, dispersion, rates):
    likelihood = LIKELIHOODS[name](dispersion=dispersion)
    n = 40_000
    draws = likelihood.draw(*(np.full(n, rate) for rate in rates), np.random.RandomState(0))
    variance = dispersion * sum(rates)
    assert draws.mean() == pytest.approx(rates[0] - rates[1], abs=5 * np.sqrt(variance / n))
    assert draws.var() == pytest.approx(variance, rel=5 * np.sqrt(2 / n))
    assert (draws == np.round(draws)).all() == likelihood.integers


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("dispersion", DISPERSIONS["real"])
def test_the_density_of_real_numbers_is_one_in_all(rates, dispersion):
    """The saddle-point density misses terms of the order φ / λ."""
    likelihood = Real(dispersion=dispersion)
    mean, deviation = rates[0] - rates[1], np.sqrt(dispersion * sum(rates))
    reach = mean - 12 * deviation, mean + 12 * deviation
    total, _ = quad(
        lambda x: np.exp(log_density(likelihood, np.array([x]), *rates)[0]), *reach, limit=200
    )
    assert total == pytest.approx(1.0, abs=dispersion / min(rates))


@pytest.mark.parametrize("rates", RATES)
def test_the_probability_of_integers_is_one_in_all(rates):
    x = np.arange(-200.0, 201.0)
    probabilities = np.exp(log_density(Integer(), x, *rates))
    assert probabilities.sum() == pytest.approx(1.0, rel=1e-12)
    assert probabilities @ x == pytest.approx(rates[0] - rates[1], rel=1e-10, abs=1e-10)


def test_the_density_is_that_of_x_in_its_unit():
    """Another unit changes all cells by the same constant."""
    x, c = np.linspace(-5.0, 5.0, 11), 16.0
    here = log_density(Real(dispersion=0.3), x, 3.0, 2.0)
    there = log_density(Real(dispersion=0.3 * c), c * x, 3.0 * c, 2.0 * c)
    assert_allclose(there, here - np.log(c), rtol=1e-12)


def test_a_cell_where_nothing_is_has_a_density():
    x = np.zeros(1)
    assert np.isfinite(log_density(Real(dispersion=0.3), x, 0.0, 0.0)).all()


@pytest.mark.parametrize("size", [1e-280, 1.0, 1e280])
def test_units_of_cells_are_near_their_largest_number(size):
    x = size * np.array([0.0, -3.0, 1.0, np.nan])
    rates = size * np.array([[2.0, 1.0, 0.0, 5.0], [1.0, 2.0, 9.0, 1.0]])
    units = Real().cell_units(x, *rates)
    largest = size * np.array([2.0, 3.0, 9.0, 5.0])
    assert ((largest / units >= 1) & (largest / units < 2)).all()
    assert_array_equal(Integer().cell_units(x, *rates), 1.0)
