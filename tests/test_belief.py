"""Normal densities of priors' logarithms: they add up, and know when they are contradicted."""

import numpy as np
import pytest

from seminmf._prior_learning.gaussian_potential import Belief


def draw_belief(seed, size=3):
    random = np.random.RandomState(seed)
    root = random.normal(size=(size, size))
    return Belief(root @ root.T + np.eye(size), random.normal(size=size))


def test_slope_and_density_belong_together():
    belief = draw_belief(0)
    point = np.array([0.3, -1.0, 2.0])
    for n, step in enumerate(1e-6 * np.eye(3)):
        numeric = (belief.log_density(point + step) - belief.log_density(point - step)) / 2e-6
        np.testing.assert_allclose(belief.slope(point)[n], numeric, rtol=1e-6)
    np.testing.assert_allclose(belief.slope(belief.mean), 0, atol=1e-12)


def test_around_has_the_slope_and_the_curvature_it_was_given():
    point, slope = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, -0.3])
    information = draw_belief(1).precision
    belief = Belief.around(point, slope, information)
    np.testing.assert_allclose(belief.slope(point), slope, atol=1e-12)
    np.testing.assert_array_equal(belief.precision, information)


def test_joined_densities_multiply():
    one, other = draw_belief(0), draw_belief(1)
    point = np.array([0.5, 0.1, -0.4])
    total = one.times(0.5).joined(other).log_density(point)
    np.testing.assert_allclose(total, 0.5 * one.log_density(point) + other.log_density(point))


def test_surprise_is_chi_squared_where_both_speak_of_the_same():
    random = np.random.RandomState(0)
    past, new = draw_belief(0).precision, draw_belief(1).precision
    surprises = []
    for _ in range(2000):
        truth = random.normal(size=3)
        means = [random.multivariate_normal(truth, np.linalg.inv(p)) for p in (past, new)]
        one, other = (
            Belief.around(m, np.zeros(3), p) for m, p in zip(means, (past, new), strict=True)
        )
        surprises.append(one.surprise(other))
    np.testing.assert_allclose(np.mean(surprises), 3, rtol=0.06)
    np.testing.assert_allclose(np.var(surprises), 6, rtol=0.2)


@pytest.mark.parametrize("shift", [5.0, 50.0])
def test_surprise_grows_with_the_square_of_the_distance(shift):
    near = Belief.weak(np.zeros(2), 10.0)
    far = Belief.weak(np.array([shift, 0.0]), 10.0)
    np.testing.assert_allclose(near.surprise(far), shift**2 * 5)


def test_nothing_is_believed_of_nothing():
    empty = Belief.weak(np.zeros(0), 1.0)
    assert empty.mean.shape == (0,)
    assert empty.surprise(empty) == 0
    assert empty.log_density(np.zeros(0)) == 0
