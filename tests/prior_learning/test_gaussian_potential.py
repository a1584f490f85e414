"""Normal densities of priors' logarithms: they add up, and know when they are contradicted."""

import numpy as np
import pytest

from seminmf._prior_learning.gaussian_potential import GaussianPotential


def draw_potential(seed, size=3):
    random = np.random.RandomState(seed)
    root = random.normal(size=(size, size))
    return GaussianPotential(root @ root.T + np.eye(size), random.normal(size=size))


def test_slope_and_density_belong_together():
    potential = draw_potential(0)
    point = np.array([0.3, -1.0, 2.0])
    for n, step in enumerate(1e-6 * np.eye(3)):
        numeric = (potential.log_density(point + step) - potential.log_density(point - step)) / 2e-6
        np.testing.assert_allclose(potential.slope(point)[n], numeric, rtol=1e-6)
    np.testing.assert_allclose(potential.slope(potential.mean), 0, atol=1e-12)


def test_around_has_the_slope_and_the_curvature_it_was_given():
    point, slope = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, -0.3])
    information = draw_potential(1).precision
    potential = GaussianPotential.around(point, slope, information)
    np.testing.assert_allclose(potential.slope(point), slope, atol=1e-12)
    np.testing.assert_array_equal(potential.precision, information)


def test_joined_densities_multiply():
    one, other = draw_potential(0), draw_potential(1)
    point = np.array([0.5, 0.1, -0.4])
    total = one.times(0.5).joined(other).log_density(point)
    np.testing.assert_allclose(total, 0.5 * one.log_density(point) + other.log_density(point))


def test_conflict_is_chi_squared_where_both_speak_of_the_same():
    random = np.random.RandomState(0)
    past, new = draw_potential(0).precision, draw_potential(1).precision
    conflicts = []
    for _ in range(2000):
        truth = random.normal(size=3)
        means = [random.multivariate_normal(truth, np.linalg.inv(p)) for p in (past, new)]
        one, other = (
            GaussianPotential.around(m, np.zeros(3), p)
            for m, p in zip(means, (past, new), strict=True)
        )
        conflicts.append(one.conflict(other))
    np.testing.assert_allclose(np.mean(conflicts), 3, rtol=0.06)
    np.testing.assert_allclose(np.var(conflicts), 6, rtol=0.2)


@pytest.mark.parametrize("shift", [5.0, 50.0])
def test_conflict_grows_with_the_square_of_the_distance(shift):
    near = GaussianPotential.weak(np.zeros(2), 10.0)
    far = GaussianPotential.weak(np.array([shift, 0.0]), 10.0)
    np.testing.assert_allclose(near.conflict(far), shift**2 * 5)


def test_nothing_is_believed_of_nothing():
    empty = GaussianPotential.weak(np.zeros(0), 1.0)
    assert empty.mean.shape == (0,)
    assert empty.conflict(empty) == 0
    assert empty.log_density(np.zeros(0)) == 0
