"""Clusters against classes."""

import itertools

import numpy as np
import pytest

from seminmf._views.matching import match


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("sizes", [(3, 3), (2, 4), (4, 2), (1, 3)])
def test_no_other_matching_gets_more_right(sizes, seed):
    random = np.random.RandomState(seed)
    classes, clusters = (random.randint(size, size=30) for size in sizes)
    found = match(classes, clusters, sizes[1])
    smaller, larger = sorted(sizes)
    best = 0
    for chosen in itertools.permutations(range(larger), smaller):
        pairs = zip(range(smaller), chosen, strict=True)
        pairs = [pair if sizes[0] <= sizes[1] else pair[::-1] for pair in pairs]
        best = max(best, sum(np.sum((classes == i) & (clusters == k)) for i, k in pairs))
    assert found.accuracy == pytest.approx(best / 30)
    assert np.trace(found.counts) == best
    for i, name in enumerate(found.classes):
        for k, number in enumerate(found.clusters):
            assert found.counts[i, k] == np.sum((classes == name) & (clusters == number))


def test_classes_come_by_size_and_those_that_stay_alone_last():
    classes = ["few"] * 2 + ["many"] * 5 + ["alone"] * 9
    clusters = [1] * 2 + [0] * 5 + [0] * 4 + [1] * 5
    found = match(classes, clusters)
    assert found.classes.tolist() == ["alone", "many", "few"]
    assert found.clusters.tolist() == [1, 0]
    assert found.counts.tolist() == [[5, 4], [0, 5], [2, 0]]
    assert found.accuracy == 10 / 16


def test_empty_clusters_are_there_if_asked_for():
    assert match([0, 0, 1], [2, 2, 0]).clusters.tolist() == [2, 0]
    assert match([0, 0, 1], [2, 2, 0], 4).clusters.tolist() == [2, 0, 1, 3]
