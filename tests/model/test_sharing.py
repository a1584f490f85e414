"""Sharing maps: which cells have the same hyperparameter."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from seminmf._model.sharing import expand, labels, n_labels

SHAPES = [(4, 3), (2, 3, 5)]
NAMES = ("all", "component", "entry")


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_of_named_maps(shape):
    together, by_component, apart = (labels(name, shape, component_axis=1) for name in NAMES)
    assert not together.any()
    assert_array_equal(apart.ravel(), np.arange(np.prod(shape)))
    for k in range(3):
        assert (np.take(by_component, k, axis=1) == k).all()
    for found, number in ((together, 1), (by_component, 3), (apart, np.prod(shape))):
        assert found.shape == shape
        assert n_labels(found) == number


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_labels_may_be_given(shape, name):
    resolved = labels(name, shape, component_axis=1)
    assert_array_equal(labels(resolved.tolist(), shape, component_axis=1), resolved)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_cell_has_the_value_of_its_label(shape):
    random = np.random.default_rng(0)
    found = labels(random.permutation(np.arange(np.prod(shape)) % 4).reshape(shape), shape, 1)
    values = random.uniform(size=4)
    cells = expand(values, found)
    for label, value in enumerate(values):
        assert (cells[found == label] == value).all()
    assert_array_equal(expand(0.3, labels("all", shape, 1)), np.full(shape, 0.3))
