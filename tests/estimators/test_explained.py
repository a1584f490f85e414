"""Amounts, clusters by them, and how much of the data is explained."""

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kinds import KINDS
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, load
from seminmf._algorithms import explained

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ESTIMATORS = [SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF]
SKELLAM = ESTIMATORS[:2]
FILES = Path(__file__).parents[1] / "files"
J, I, K = 30, 7, 3


def data(gaps=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.7, 2.0, (J, K)) @ rng.normal(size=(K, I)) + 0.3 * rng.normal(size=(J, I))
    X[rng.random(X.shape) < gaps] = np.nan
    return X


def make(estimator, **parameters):
    return estimator(K, **{"max_iter": 30, "random_state": 0, "n_jobs": 1, **parameters})


def plain_r2(X, activations, components):
    """The formula, as it is written."""
    errors = X - np.asarray(activations, dtype=float) @ components.astype(float)
    return 1 - np.nansum(errors**2) / np.nansum(X**2)


def plain_drops(X, model):
    """Each component is taken out, one after the other."""
    activations = np.asarray(model.activations_, dtype=float)
    whole = plain_r2(X, activations, model.components_)
    drops = []
    for k in range(len(model.components_)):
        kept = np.arange(len(model.components_)) != k
        drops.append(whole - plain_r2(X, activations[:, kept], model.components_[kept]))
    return drops


# --- amounts and clusters -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_amounts_are_what_components_put_into_samples(estimator, dtype):
    model = make(estimator).fit(data().astype(dtype))
    parts = np.abs(np.einsum("jk,ki->jki", model.activations_, model.components_))
    assert model.amounts_.shape == (J, K) and model.amounts_.dtype == dtype
    assert_allclose(model.amounts_, parts.sum(axis=2), rtol=1e-5)
    assert_allclose(model.amounts_.sum(axis=1), parts.sum(axis=(1, 2)), rtol=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_predict_is_the_largest_amount(estimator):
    X = data()
    model = make(estimator, max_iter=2000).fit(X)
    sizes = np.abs(model.components_).sum(axis=1)
    assert_array_equal(model.predict(X), np.argmax(model.transform(X) * sizes, axis=1))
    assert_array_equal(make(estimator, max_iter=2000).fit_predict(X), model.predict(X))


@pytest.mark.parametrize("factor", [1e-6, 1e-2, 1e3, 1e9])
def test_the_size_of_a_frozen_component_does_not_change_clusters(factor):
    X = data(gaps=0.0)
    components = np.random.default_rng(1).normal(size=(K, I))
    expected = None
    for size in (1.0, factor):
        scaled = components * np.array([size, 1.0, 1.0])[:, None]
        model = make(EuclideanSNMF).fit(X, components=scaled, frozen=range(K))
        assert_allclose(model.components_, scaled)
        labels, amounts = model.predict(X), model.amounts_
        if expected is None:
            expected = labels, amounts
    assert_array_equal(labels, expected[0])
    assert_allclose(amounts, expected[1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("mass", [0.0, 5.0, 100.0])
def test_what_cancels_within_a_frozen_atom_is_no_amount(mass):
    """Both parts of an atom may have the same on top: that is no part of what is put in."""
    signed = np.random.default_rng(1).normal(size=(2, I))
    atoms = np.maximum([signed, -signed], 0)
    atoms[:, 0] += mass
    X = np.abs(np.random.default_rng(2).normal(size=(J, 2))) @ signed
    model = SkellamSNMF(2, random_state=0).fit(X, atoms=atoms, frozen=[0, 1])
    sizes = np.abs(atoms[0] - atoms[1]).sum(axis=1) / atoms.sum(axis=(0, 2))
    assert_allclose(model.amounts_, model.activations_ * sizes)
    assert_array_equal(model.predict(X), np.argmax(model.transform(X) * sizes, axis=1))


# --- R² -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("estimator", SKELLAM)
def test_r2_of_all_kinds_of_data(estimator, gaps, kind):
    X, other = data(gaps), data(gaps, seed=1)
    model = make(estimator).fit(KINDS[kind](X))
    assert model.r2_ == pytest.approx(plain_r2(X, model.activations_, model.components_), abs=1e-12)
    assert_allclose(model.r2_drop_, plain_drops(X, model), atol=1e-12)
    found = plain_r2(other, model.transform(other), model.components_)
    assert model.r2(KINDS[kind](other)) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("kind", ["array", "disk"])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_r2_of_least_squares(gaps, kind):
    X, other = data(gaps), data(gaps, seed=1)
    model = make(EuclideanSNMF).fit(KINDS[kind](X))
    assert model.r2_ == pytest.approx(plain_r2(X, model.activations_, model.components_), abs=1e-12)
    assert_allclose(model.r2_drop_, plain_drops(X, model), atol=1e-12)
    found = plain_r2(other, model.transform(other), model.components_)
    assert model.r2(KINDS[kind](other)) == pytest.approx(found, abs=1e-9)


def test_zeros_of_a_sparse_matrix_that_are_data():
    X = np.where(np.random.default_rng(0).random((J, I)) < 0.5, data(gaps=0.0), 0.0)
    model = make(SkellamSNMF, sparse_zeros="observed").fit(sparse.csr_array(X))
    assert model.r2_ == pytest.approx(plain_r2(X, model.activations_, model.components_), abs=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_r2_of_the_training_data(estimator):
    X = data()
    model = make(estimator, max_iter=3000).fit(X)
    assert model.converged_
    assert model.r2(X) == pytest.approx(model.r2_, abs=1e-7)
    assert 0.5 < model.r2_ < 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_blocks_change_rounding_alone(estimator, monkeypatch, many_tasks):
    X = data()
    whole = make(estimator).fit(X)
    monkeypatch.setattr(explained, "_BLOCK", 3 * I)
    parts, threads = make(estimator).fit(X), make(estimator, n_jobs=3).fit(X)
    assert parts.r2_ == pytest.approx(whole.r2_, rel=1e-12)
    assert_allclose(parts.r2_drop_, whole.r2_drop_, rtol=1e-9)
    assert parts.r2_ == threads.r2_
    assert_array_equal(parts.r2_drop_, threads.r2_drop_)


@pytest.mark.parametrize("factor", [1e-280, 1e-160, 1e160, 1e290])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_unit_does_not_matter(estimator, factor):
    X = data()
    here, there = make(estimator, tol=0).fit(X), make(estimator, tol=0).fit(factor * X)
    assert there.r2_ == pytest.approx(here.r2_, rel=1e-3)
    assert_allclose(there.r2_drop_, here.r2_drop_, rtol=1e-2, atol=1e-3)
    assert there.r2(factor * X) == pytest.approx(there.r2_, abs=0.02)


def test_chunks_of_different_sizes():
    """Each chunk has a unit of its own; of numbers next to nothing in others, nothing is left."""
    X = data(gaps=0.0)
    model = make(SkellamSNMF, dispersion=0.0).fit(X)  # noise would refuse other sizes
    sizes = np.repeat([1e-200, 1.0, 1e200, 1e-3, 0.0], J // 5)[:, None]
    largest = slice(2 * J // 5, 3 * J // 5)
    found = model.r2(KINDS["dask"](sizes * X))
    assert found == pytest.approx(model.r2(1e200 * X[largest]), abs=1e-12)


def test_weights_do_not_count():
    X = data()
    weights = np.linspace(0.1, 3, J)
    model = make(SkellamSNMF).fit(X, sample_weight=weights)
    assert model.r2_ == pytest.approx(plain_r2(X, model.activations_, model.components_), abs=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_nothing_to_explain(estimator):
    X = np.zeros((6, 4))
    X[0, 0] = np.nan
    with pytest.warns(UserWarning, match="Next to nothing is explained: R² is 0"):
        model = make(estimator).fit(X)
    assert model.r2_ == 0 and model.r2(X) == 0
    assert_array_equal(model.r2_drop_, np.zeros(K))
    assert np.isnan(model.r2(np.full((2, 4), np.nan)))


def test_starts_that_are_much_too_large_give_numbers():
    X, start = data(gaps=0.0), np.full((J, K), 1e200)
    with pytest.warns(UserWarning, match=r"R² is -1.8e\+308"):
        model = make(SkellamSNMF, dispersion=0.0, max_iter=0).fit(X, activations=start)
    assert -np.inf < model.r2_ < -1e300
    assert np.isfinite(model.r2_drop_).all()


def test_an_intercept_is_part_of_the_fit():
    X = data() + np.arange(I)
    model = make(SkellamSNMF, fit_intercept=True).fit(X)
    activations = model.transform(X)
    expected = plain_r2(X - model.intercept_, activations, model.components_)
    assert np.abs(model.intercept_).max() > 1
    assert model.r2(X) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("estimator", SKELLAM)
def test_after_a_batch_it_is_that_of_the_batch(estimator):
    model = make(estimator)
    for seed in range(3):
        X = data(seed=seed)
        model.partial_fit(X)
        expected = plain_r2(X, model.activations_, model.components_)
        assert model.r2_ == pytest.approx(expected, abs=1e-12)
        assert_allclose(model.r2_drop_, plain_drops(X, model), atol=1e-12)
    model = make(estimator, batch_size=10, max_iter=2).fit(X)
    assert model.r2_ == pytest.approx(plain_r2(X, model.activations_, model.components_), abs=1e-12)


def test_unfitted():
    for estimator in ESTIMATORS:
        assert not hasattr(estimator(), "amounts_")
        assert not hasattr(estimator(), "r2_")


# --- files and pickles ----------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_files_and_pickles_keep_it(estimator, tmp_path):
    model = make(estimator).fit(data().astype(np.float32))
    model.save(tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.r2_ == model.r2_
        assert_array_equal(other.r2_drop_, model.r2_drop_)
        assert other.r2_drop_.dtype == np.float64
        assert_array_equal(other.amounts_, model.amounts_)
        assert other.r2(data()) == model.r2(data())


@pytest.mark.parametrize("name", ["skellam-1", "skellam-float32-1", "bayesian-1", "euclidean-1"])
def test_older_files_do_not_know_it(name, tmp_path):
    model = load(FILES / f"{name}.safetensors")
    assert np.isnan(model.r2_)
    assert_array_equal(model.r2_drop_, np.full(len(model.components_), np.nan))
    known = json.loads((FILES / f"{name}.json").read_text("utf-8"))
    X = pd.DataFrame(known["X"], columns=known["feature_names"], dtype=float)
    expected = plain_r2(X.to_numpy(), model.transform(X), model.components_)
    assert model.r2(X) == pytest.approx(expected, abs=1e-5)
    model.save(tmp_path / "again")
    assert np.isnan(load(tmp_path / "again").r2_)


# --- warnings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_noise_is_said_to_be_unexplained(estimator):
    """With one component that is frozen to the wrong feature, there is nothing to find."""
    X = np.random.default_rng(0).normal(size=(J, I)) * np.r_[1e-3, np.ones(I - 1)]
    wrong = np.zeros((1, I))
    wrong[0, 0] = 1.0
    start = {
        SkellamSNMF: {"atoms": wrong},
        BayesianSkellamSNMF: {"atom_shape": np.array([1e9 * wrong + 1, np.ones((1, I))])},
        EuclideanSNMF: {"components": wrong},
    }[estimator]
    with pytest.warns(UserWarning, match=r"Next to nothing is explained: R² is (-|[0-9.e-]+)"):
        model = estimator(1, random_state=0).fit(X, frozen=[0], **start)
    assert model.r2_ < 0.01


def test_an_empty_component_is_named():
    X = data(gaps=0.0)
    components = np.vstack([np.linalg.svd(X)[2][:2], np.full(I, np.nan)])
    components[2] = 0.0
    with pytest.warns(UserWarning, match="Component 2 is empty"):
        make(EuclideanSNMF).fit(X, components=components, frozen=[2])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_good_fit_says_nothing(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(estimator, max_iter=3000).fit(data(gaps=0.0))


def test_batches_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(SkellamSNMF, dispersion=0.0).partial_fit(np.zeros((6, 4)))
