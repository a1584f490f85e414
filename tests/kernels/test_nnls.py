"""Nonnegative least squares, sample by sample: against SciPy's, and by its conditions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from squares_in_gaps import row_problem

from seminmf._data.dense import DenseSource
from seminmf._data.executor import LocalExecutor
from seminmf._kernels.euclidean.least_squares import GAP_WEIGHT
from seminmf._kernels.euclidean.nnls import solve_rows

# Samples, features and components: more features than components, and fewer.
SIZES = [(30, 9, 4), (20, 1, 1), (25, 12, 12), (20, 4, 9)]


def draw(sizes, gaps=0.0, seed=0):
    n_samples, n_features, n_components = sizes
    random = np.random.default_rng(seed)
    components = random.normal(size=(n_components, n_features))
    X = random.gamma(0.5, 2.0, (n_samples, n_components)) @ components
    X += random.normal(size=X.shape)
    X[random.random(X.shape) < gaps] = np.nan
    return X, components


def solve(X, components, unit=1.0):
    return solve_rows(DenseSource(X), unit, components, LocalExecutor())


def assert_optimal(X, components, activations):
    """No value is negative; the slope is 0 where a value is positive, and upwards where it is 0."""
    assert (activations >= 0).all()
    residuals = np.where(np.isnan(X), 0.0, X - activations @ components)
    in_gaps = np.isnan(X) @ components.T**2
    descent = residuals @ components.T - GAP_WEIGHT * in_gaps * activations
    size = np.abs(np.nan_to_num(X)) @ np.abs(components).T + 1e-300
    assert (descent <= 1e-10 * size).all()
    assert (np.abs(descent)[activations > 0] <= 1e-10 * size[activations > 0]).all()


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_against_scipy(sizes, gaps):
    X, components = draw(sizes, gaps)
    found = solve(X, components)
    assert_optimal(X, components, found)
    assert (found == 0).any() and (found > 0).any()
    for x, own in zip(X, found, strict=True):
        design, target = row_problem(x, components)
        expected, distance = nnls(design, target)
        found_distance = np.linalg.norm(target - design @ own)
        assert found_distance == pytest.approx(distance, rel=1e-9, abs=1e-9)
        if np.sum(~np.isnan(x)) >= len(components):  # or else there are many solutions
            assert_allclose(own, expected, rtol=1e-7, atol=1e-9)


def test_components_that_depend_on_each_other():
    X, components = draw((30, 9, 4))
    components = np.concatenate([components, components[:2], components[:1] + components[1:2]])
    components = np.concatenate([components, np.zeros((1, 9))])
    found = solve(X, components)
    assert_optimal(X, components, found)
    assert_array_equal(found[:, -1], 0.0)


def test_components_of_any_size():
    X, components = draw((30, 9, 4))
    sizes = np.array([1e-8, 1.0, 1e6, 1e-3])
    assert_allclose(solve(X, sizes[:, None] * components) * sizes, solve(X, components), rtol=1e-8)


def test_activations_are_those_of_x_in_its_unit():
    X, components = draw((30, 9, 4), gaps=0.2)
    assert_array_equal(solve(X, components, unit=4.0), solve(X / 4, components))


def test_a_sample_without_cells_has_none():
    X, components = draw((5, 9, 4))
    X[2] = np.nan
    found = solve(X, components)
    assert_array_equal(found[2], 0.0)
    assert_array_equal(np.delete(found, 2, 0), solve(np.delete(X, 2, 0), components))


def test_what_components_can_make_is_found():
    random = np.random.default_rng(0)
    components = random.normal(size=(4, 9))
    activations = random.gamma(1.0, 1.0, (20, 4)) * (random.random((20, 4)) < 0.7)
    assert_allclose(solve(activations @ components, components), activations, atol=1e-12)
