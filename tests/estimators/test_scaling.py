"""Features that are scaled by the model: it is fitted to X / scale, and speaks of X."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kinds import KINDS, chunked, stored
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from seminmf import (
    BayesianSkellamSNMF,
    EuclideanSNMF,
    PriorLearner,
    SkellamSNMF,
    bootstrap,
    consensus,
    load,
    select_n_components,
)
from seminmf._data.dense import DenseSource
from seminmf._data.sizes import feature_sizes
from seminmf._estimators import container
from seminmf._estimators.files import FORMAT, SCALE
from seminmf.report import report

FILES = Path(__file__).parents[1] / "files"
ESTIMATORS = [
    SkellamSNMF(2, scale_features=True, random_state=0),
    SkellamSNMF(2, scale_features=True, fit_intercept=True, random_state=0),
    SkellamSNMF(2, scale_features=True, dispersion=0.0, random_state=0),
    EuclideanSNMF(2, scale_features=True, random_state=0),
    BayesianSkellamSNMF(2, scale_features=True, max_iter=60, random_state=0),
    BayesianSkellamSNMF(2, scale_features=True, posterior="mean-field", random_state=0),
]
NAMES = ["map", "intercept", "without noise", "least squares", "draws", "mean field"]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data():
    """Features of sizes from 1e-3 to 1e4, around 0 but for one, with gaps."""
    random = np.random.RandomState(0)
    X = random.gamma(0.5, size=(60, 2)) @ random.normal(size=(2, 5))
    X += 0.1 * random.normal(size=X.shape)
    X *= [1e-3, 1.0, 30.0, 1e4, 5.0]
    X[random.uniform(size=X.shape) < 0.1] = np.nan
    return X


def fitted_both(estimator):
    """A scaled fit, and one that is not to data that are."""
    X = data()
    model = clone(estimator).fit(X)
    plain = clone(estimator).set_params(scale_features=False).fit(X / model.feature_scale_)
    return X, model, plain, model.feature_scale_


@every_estimator
def test_it_is_a_fit_to_scaled_features(estimator):
    X, model, plain, scale = fitted_both(estimator)
    assert_array_equal(plain.feature_scale_, np.ones(5))
    assert_array_equal(model.activations_, plain.activations_)
    assert_array_equal(model.transform(X), plain.transform(X / scale))
    assert_array_equal(model.predict(X), plain.predict(X / scale))
    assert_array_equal(model.amounts_, plain.amounts_)
    assert model.r2(X) == plain.r2(X / scale) and model.r2_ == plain.r2_
    assert_allclose(model.components_, plain.components_ * scale, rtol=1e-12)
    rebuilt = model.inverse_transform(model.activations_)
    assert_allclose(rebuilt, plain.inverse_transform(plain.activations_) * scale, rtol=1e-9)
    filled = model.impute(X)
    assert_allclose(filled, plain.impute(X / scale) * scale, rtol=1e-9)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    rows, columns = np.nonzero(np.isnan(X))
    assert_allclose(model.predict_cells(rows, columns), filled[rows, columns], rtol=1e-6)
    for name in ("noise_", "intercept_"):
        if hasattr(model, name):
            assert_allclose(getattr(model, name), getattr(plain, name) * scale, rtol=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS[:3], ids=NAMES[:3])
def test_the_score_is_a_density_in_the_unit_of_x(estimator):
    X, model, plain, scale = fitted_both(estimator)
    seen = ~np.isnan(X)
    weights = np.arange(60) % 3
    mean = (weights @ (seen @ np.log(scale))) / (weights @ seen.sum(axis=1))
    expected = plain.score(X / scale, sample_weight=weights) - mean
    assert model.score(X, sample_weight=weights) == pytest.approx(expected, rel=1e-9)


def test_the_parts_of_cells_sum_to_x():
    X, model, plain, scale = fitted_both(ESTIMATORS[0])
    assert_allclose(model.sources(X), plain.sources(X / scale) * scale[:, None], rtol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS[4:], ids=NAMES[4:])
def test_intervals_are_in_the_unit_of_x(estimator):
    X, model, plain, scale = fitted_both(estimator)
    units = {"activations": 1.0, "components": scale, "amounts": 1.0, "cells": scale}
    found, expected = model.interval(), plain.interval()
    for name, unit in units.items():
        for end, other in zip(getattr(found, name), getattr(expected, name), strict=True):
            assert_allclose(end, other * unit, rtol=1e-9)
    fills = model.impute(X, return_interval=True)
    for fill, other in zip(fills, plain.impute(X / scale, return_interval=True), strict=True):
        assert_allclose(fill, other * scale, rtol=1e-9)
        assert_array_equal(fill[~np.isnan(X)], X[~np.isnan(X)])


@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=NAMES[:4])
def test_a_bootstrap_is_in_the_unit_of_x(estimator):
    X, model, plain, scale = fitted_both(estimator)
    found = bootstrap(model, X, n_draws=2, random_state=0)
    expected = bootstrap(plain, X / scale, n_draws=2, random_state=0).at(0.5)
    found = found.at(0.5)
    assert_array_equal(found.activations, expected.activations)
    assert_allclose(found.components, expected.components * scale, rtol=1e-9)
    assert_allclose(found.cells, expected.cells * scale, rtol=1e-9)


def test_known_noise_is_in_the_unit_of_x():
    X = data()
    noise = 0.1 * np.nanstd(X, axis=0)
    model = clone(ESTIMATORS[0]).fit(X, cell_noise=noise)
    scale = model.feature_scale_
    plain = SkellamSNMF(2, random_state=0).fit(X / scale, cell_noise=noise / scale)
    assert_allclose(model.activations_, plain.activations_, rtol=1e-6)
    # Infinite noise makes a gap.
    hidden = np.broadcast_to(noise, X.shape).copy()
    hidden[3, 3] = np.inf
    filled = model.impute(X, cell_noise=hidden)
    assert filled[3, 3] != X[3, 3] and filled[4, 4] == X[4, 4]


def test_start_values_are_in_the_unit_of_what_they_are_of():
    X = data()
    model = SkellamSNMF(2, scale_features=True, dispersion=0.0, random_state=0).fit(X)
    start = clone(model).set_params(max_iter=0)
    for atoms in (model.components_, model.atoms_):
        found = clone(start).fit(X, atoms=atoms).components_
        ratios = found / model.components_
        assert_allclose(ratios, np.repeat(ratios[:, :1], 5, axis=1), rtol=1e-6)
    squares = EuclideanSNMF(2, scale_features=True, random_state=0)
    known = squares.fit(X).components_
    again = clone(squares).fit(X, components=known, frozen=[0, 1])
    assert_allclose(again.components_, known, rtol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "disk"])
def test_all_kinds_of_data_are_scaled(kind):
    X = data()
    estimator = SkellamSNMF(2, scale_features=True, random_state=0, max_iter=30)
    model, other = (clone(estimator).fit(KINDS[name](X)) for name in ("array", kind))
    assert_allclose(other.feature_scale_, model.feature_scale_, rtol=1e-12)
    assert_allclose(other.components_, model.components_, rtol=1e-2)
    assert_allclose(model.transform(KINDS[kind](X)), model.transform(X), rtol=1e-6, atol=1e-9)
    filled = model.impute(KINDS[kind](X))
    assert_allclose(filled, model.impute(X), rtol=1e-6)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


def test_cells_that_are_not_stored_may_be_zeros():
    X = np.nan_to_num(data())
    model = SkellamSNMF(2, scale_features=True, sparse_zeros="observed", random_state=0)
    assert_allclose(model.fit(stored(X)).feature_scale_, np.sqrt((X**2).mean(axis=0)), rtol=1e-12)


def test_single_precision_stays():
    model = clone(ESTIMATORS[0]).fit(data().astype(np.float32))
    found = (model.components_, model.transform(data().astype(np.float32)), model.activations_)
    assert {part.dtype for part in found} == {np.dtype(np.float32)}


def test_batches_keep_the_scale_of_the_first():
    X = data()
    model = clone(ESTIMATORS[0]).partial_fit(X[:30])
    scale = model.feature_scale_
    assert_array_equal(model.partial_fit(X[30:]).feature_scale_, scale)
    assert_allclose(scale, np.sqrt(np.nanmean(X[:30] ** 2, axis=0)), rtol=1e-12)


def test_a_fit_without_scaling_forgets_it():
    model = clone(ESTIMATORS[0]).fit(data())
    model.set_params(scale_features=False).fit(data())
    assert_array_equal(model.feature_scale_, np.ones(5))


@every_estimator
def test_files_keep_it(estimator, tmp_path):
    X = data()
    model = clone(estimator).fit(X)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.scale_features is True
    assert_array_equal(loaded.feature_scale_, model.feature_scale_)
    assert_array_equal(loaded.components_, model.components_)
    assert_array_equal(loaded.impute(X), model.impute(X))


def test_files_of_tables_that_the_command_line_had_scaled(tmp_path):
    """They have numbers of X / scale and the scale, and no parameter that says so."""
    old = FILES / "skellam-float32-1.safetensors"
    content = container.read(old, FORMAT, lambda header: None)
    scale = np.arange(1.0, load(old).n_features_in_ + 1)
    content.arrays[SCALE] = scale
    container.write(tmp_path / "scaled", FORMAT, content)
    model, plain = load(tmp_path / "scaled"), load(old)
    X = np.arange(5.0 * len(scale)).reshape(5, -1).astype(np.float32)
    assert model.scale_features and not plain.scale_features
    assert_allclose(model.components_, plain.components_ * scale, rtol=1e-6)
    scaled = (X * scale).astype(np.float32)
    assert_allclose(model.transform(scaled), plain.transform(X), rtol=1e-4)


def test_the_report_and_the_consensus_know_of_it():
    X, model, plain, scale = fitted_both(SkellamSNMF(2, scale_features=True, random_state=0))
    same = {"title": "t"}
    page, other = report(model, X, **same), report(plain, X, feature_scale=scale, **same)
    cells, others = (set(re.findall(r"<td[^>]*>([^<]*)<", text)) for text in (page, other))
    assert len(cells) > 20 and cells ^ others <= {"True", "False"}
    found = consensus(model, X, n_runs=2, random_state=0).components
    expected = consensus(plain, X / scale, n_runs=2, random_state=0).components
    assert_array_equal(found, expected)


def test_the_choice_of_k_scales():
    X = data()
    options = {"criterion": "heldout", "n_folds": 1, "random_state": 0, "learn_prior": False}
    posterior = BayesianSkellamSNMF(scale_features=True, dispersion=1.0, max_iter=20)
    scale = feature_sizes(DenseSource(X), around_mean=False)
    found = select_n_components(X, [1, 2], estimator=posterior, **options)
    plain = clone(posterior).set_params(scale_features=False)
    expected = select_n_components(X / scale, [1, 2], estimator=plain, **options)
    pd.testing.assert_frame_equal(found.table, expected.table)


def test_what_cannot_be_scaled():
    X = np.rint(np.nan_to_num(data()))
    with pytest.raises(ValueError, match="scale_features must be True or False; found 'std'"):
        SkellamSNMF(scale_features="std").fit(X)
    for kind in (SkellamSNMF, BayesianSkellamSNMF):
        with pytest.raises(ValueError, match="scale_features makes real numbers of integers"):
            kind(likelihood="integer", scale_features=True).fit(X)
    with pytest.raises(ValueError, match=r"in memory or on disk .* scale_features.* Dask"):
        SkellamSNMF(scale_features=True).fit(chunked(X))
    learner = PriorLearner(BayesianSkellamSNMF(scale_features=True))
    with pytest.raises(ValueError, match=r"scale_features must be False for .*PriorLearner"):
        learner.partial_fit(X)
    with pytest.raises(ValueError, match=r"finite.* found inf in row 0, column 1"):
        SkellamSNMF(scale_features=True).fit([[1.0, np.inf], [2.0, 3.0]])


@pytest.mark.parametrize("around_mean", [False, True])
def test_sizes(around_mean):
    random = np.random.RandomState(1)
    X = random.normal(3.0, 2.0, size=(2000, 6)) * [1e-200, 1.0, 1e200, 1.0, 1.0, 1.0]
    X[:, 3], X[:, 4], X[:, 5] = 0.0, np.nan, 0.1
    X[random.uniform(size=X.shape) < 0.3] = np.nan
    found = feature_sizes(DenseSource(X), around_mean=around_mean)
    unit = np.array([1e-200, 1.0, 1e200])
    values = X[:, :3] / unit
    size = np.nanstd(values, axis=0) if around_mean else np.sqrt(np.nanmean(values**2, axis=0))
    assert_allclose(found[:3] / unit, size, rtol=1e-12)
    # Of zeros, of nothing, and one that does not vary.
    assert_allclose(found[3:], [1.0, 1.0, 0.1], rtol=1e-12)


def test_sizes_do_not_depend_on_blocks(monkeypatch):
    X = data()
    whole = feature_sizes(DenseSource(X), around_mean=True)
    monkeypatch.setattr("seminmf._data.source._TASK", 20)
    assert_allclose(feature_sizes(DenseSource(X), around_mean=True), whole, rtol=1e-12)
