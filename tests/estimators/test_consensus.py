"""Components that come back."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, consensus
from seminmf._resampling import consensus as module

K = 3


def data(seed=0, n_samples=120, n_features=10):
    rng = np.random.default_rng(seed)
    components = rng.normal(size=(K, n_features))
    components /= np.abs(components).sum(axis=1, keepdims=True)
    X = rng.gamma(0.5, 5.0, (n_samples, K)) @ components
    return X + 0.3 * rng.normal(size=X.shape), components


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF])
def test_groups_account_for_all_components(estimator):
    X, _ = data()
    found = consensus(estimator(K, max_iter=100), X, n_runs=4, random_state=0)
    assert found.n_runs == 4
    assert found.n_runs_with.sum() == 4 * K
    assert np.all(np.diff(found.n_runs_with) <= 0)
    assert found.components.shape == found.spread.shape == (len(found.cosines), 10)
    assert np.all(found.cosines >= 0.9)


def test_true_components_come_back():
    X, components = data()
    found = consensus(SkellamSNMF(K), X, n_runs=6, random_state=0)
    assert_array_equal(found.n_runs_with[:K], 6)
    cosines = found.components[:K] @ components.T
    lengths = np.outer(
        np.linalg.norm(found.components[:K], axis=1), np.linalg.norm(components, axis=1)
    )
    assert np.sort((cosines / lengths).max(axis=0))[0] > 0.98


def test_groups_are_by_direction_and_one_of_each_run():
    first, second = np.eye(2, 4), np.array([[0.0, 0, 1, 0], [0, 1, 0.05, 0]])
    groups = module._groups(np.array([first, second, first[::-1]]), same=0.95)
    assert [len(group) for group in groups] == [3, 2, 1]
    assert_allclose(groups[0][:, 1], 1.0)
    assert_allclose(groups[2], [[0, 0, 1, 0]])


def test_a_component_twice_in_a_run_counts_once():
    twice = np.array([[1.0, 0.0], [1.0, 0.01]])
    groups = module._groups(np.array([twice, twice]), same=0.95)
    assert [len(group) for group in groups] == [2, 2]


def test_the_same_seed_gives_the_same(tmp_path):
    X, _ = data()
    first, second = (
        consensus(EuclideanSNMF(K), X, n_runs=3, n_jobs=n_jobs, random_state=7) for n_jobs in (1, 2)
    )
    assert_array_equal(first.components, second.components)


def test_table_and_picture():
    X, _ = data()
    X = pd.DataFrame(X, columns=list("abcdefghij"))
    found = consensus(EuclideanSNMF(K), X, n_runs=3, random_state=0)
    assert found.feature_names == list("abcdefghij")
    assert list(found.table.columns) == ["runs", "share", "cosine"]
    ax = found.plot()
    assert len(ax.patches) == len(found.components)
    assert ax.get_ylabel() == "runs that had it"


@pytest.mark.parametrize(
    ("options", "words"), [({"n_runs": 1}, "n_runs must be"), ({"same": 1.5}, "same must be")]
)
def test_refused(options, words):
    with pytest.raises(ValueError, match=words):
        consensus(EuclideanSNMF(K), data()[0], **options)
