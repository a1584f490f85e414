"""Refits to data like those of a fit."""

import numpy as np
import pandas as pd
import pytest
from numpy.random import RandomState
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, bootstrap, sample_skellam_snmf
from seminmf._estimators.base import BaseSNMF
from seminmf._resampling import bootstrap as module

K = 3
ESTIMATORS = {
    "map": lambda: SkellamSNMF(K, random_state=0),
    "paper": lambda: SkellamSNMF(K, dispersion=0.0, random_state=0),
    "intercept": lambda: SkellamSNMF(K, fit_intercept=True, random_state=0),
    "bayesian": lambda: BayesianSkellamSNMF(K, max_iter=200, random_state=0),
    "euclidean": lambda: EuclideanSNMF(K, random_state=0),
}
PARTS = ("activations", "components", "amounts", "cells")


def truth(seed=0, n_samples=120, n_features=10, ratio=5.0):
    rng = np.random.default_rng(seed)
    components = rng.normal(size=(K, n_features))
    components /= np.abs(components).sum(axis=1, keepdims=True)
    activations = rng.gamma(0.5, 5.0, (n_samples, K))
    means = activations @ components
    noise = np.sqrt(np.mean(means**2)) / ratio
    return means + noise * rng.normal(size=means.shape), activations, components


def gappy(share=0.1, **options):
    X, *_ = truth(**options)
    X[np.random.default_rng(1).random(X.shape) < share] = np.nan
    return X


@pytest.fixture(scope="module", params=list(ESTIMATORS))
def fitted(request):
    X = gappy()
    return ESTIMATORS[request.param]().fit(X), X


@pytest.mark.parametrize("kind", module.KINDS)
def test_intervals_hold_the_model(fitted, kind):
    model, X = fitted
    found = bootstrap(model, X, n_draws=8, kind=kind, random_state=0)
    own = {
        "activations": model.activations_,
        "components": model.components_,
        "amounts": model.amounts_,
        "cells": model.inverse_transform(model.activations_),
    }
    for name in PARTS:
        lower, upper = getattr(found, name)
        assert lower.shape == upper.shape == own[name].shape
        # The mirror image of an interval is in it, so its centre is.
        rounding = 1e-9 * np.abs(own[name]).max()
        assert np.all((lower <= own[name] + rounding) & (own[name] <= upper + rounding))
    assert found.activations.lower.min() >= 0 and found.amounts.lower.min() >= 0
    assert np.all((found.n_returned >= 0) & (found.n_returned <= 8))
    assert (found.kind, found.n_draws, found.level) == (kind, 8, 0.9)


def test_what_is_drawn_is_like_the_data():
    X, activations, components = truth(n_samples=2000)
    true = np.std(X - activations @ components)
    for model in (SkellamSNMF(K, random_state=0), EuclideanSNMF(K, random_state=0)):
        model.fit(X)
        data = model._check_data(X)
        drawn = model._drawn_like(data, RandomState(0))
        residuals = X - model.inverse_transform(model.activations_)
        noise = drawn - model.inverse_transform(model.activations_)
        assert_allclose(noise.mean(axis=0), 0, atol=5 * noise.std() / np.sqrt(len(X)))
        # A fit takes some of the noise for signal; what is drawn has it again.
        assert noise.std() > 1.05 * residuals.std()
        assert_allclose(noise.std(), true, rtol=0.1)


def test_integers_stay_integers():
    X, *_ = sample_skellam_snmf(80, 6, 2, random_state=0)
    for estimator in (SkellamSNMF, BayesianSkellamSNMF):
        model = estimator(2, likelihood="integer", max_iter=200, random_state=0).fit(X)
        drawn = model._drawn_like(model._check_data(X), RandomState(0))
        assert_array_equal(drawn, np.round(drawn))
        assert bootstrap(model, X, n_draws=3, random_state=0).components.lower.shape == (2, 6)


def test_the_truth_is_held():
    """90 % intervals hold most true values, of parametric draws."""
    shares = {name: [] for name in PARTS}
    for seed in range(3):
        X, activations, components = truth(seed)
        model = SkellamSNMF(K, random_state=0).fit(X)
        found = bootstrap(model, X, n_draws=60, random_state=seed)
        cosines = model.components_ @ components.T
        lengths = np.linalg.norm(model.components_, axis=1)[:, None]
        cosines /= lengths * np.linalg.norm(components, axis=1)
        order = linear_sum_assignment(-cosines)[1]
        activations, components = activations[:, order], components[order]
        true = (activations, components, activations, activations @ components)
        for name, values in zip(PARTS, true, strict=True):
            lower, upper = getattr(found, name)
            shares[name].append(np.mean((lower <= values) & (values <= upper)))
    means = {name: np.mean(values) for name, values in shares.items()}
    assert all(0.8 <= means[name] <= 0.97 for name in ("activations", "amounts", "cells")), means
    assert 0.65 <= means["components"] <= 0.99, means


def test_a_level_is_a_level():
    X = gappy()
    model = SkellamSNMF(K, random_state=0).fit(X)
    found = bootstrap(model, X, n_draws=20, random_state=0)
    narrow = found.at(0.5)
    for name in PARTS:
        wide, inner = getattr(found, name), getattr(narrow, name)
        assert np.all(wide.lower <= inner.lower) and np.all(inner.upper <= wide.upper)
    assert_array_equal(narrow.n_returned, found.n_returned)


def test_what_is_not_there_does_not_come_back():
    X, *_ = truth(ratio=20.0)
    model = SkellamSNMF(K + 2, random_state=0).fit(X)
    found = bootstrap(model, X, n_draws=20, kind="rows", random_state=0)
    strong = np.argsort(-model.r2_drop_)
    assert np.all(found.n_returned[strong[:K]] >= 19)
    assert np.all(found.n_returned[strong[K:]] < 19)
    assert list(found.table.columns) == ["returned", "share", "cosine"]
    assert str(found.n_returned[0]) in repr(found)
    noise = np.random.default_rng(0).normal(size=(120, 10))
    model = SkellamSNMF(K, random_state=0).fit(noise)
    assert np.all(bootstrap(model, noise, n_draws=10, random_state=0).n_returned <= 5)


def test_frozen_components_stay():
    X, _, components = truth()
    start = np.full((K, 10), np.nan)
    start[0] = components[0]
    model = SkellamSNMF(K, random_state=0).fit(X, atoms=start, frozen=[0])
    found = bootstrap(model, X, n_draws=4, frozen=[0], random_state=0)
    assert_allclose(found.components.lower[0], found.components.upper[0], atol=1e-12)
    assert np.all(found.components.lower[1] < found.components.upper[1])


def test_cells_of_known_noise():
    X, *_ = truth()
    noise = np.where(np.arange(120) < 60, 0.1, 0.4)[:, None] * np.ones(10)
    X = X + noise * np.random.default_rng(0).normal(size=X.shape)
    model = SkellamSNMF(K, random_state=0).fit(X, cell_noise=noise)
    found = bootstrap(model, X, n_draws=10, cell_noise=noise, random_state=0)
    widths = np.mean(found.cells.upper - found.cells.lower, axis=1)
    assert widths[60:].mean() > 2 * widths[:60].mean()
    rows = bootstrap(model, X, n_draws=2, kind="rows", cell_noise=noise, random_state=0)
    assert rows.cells.lower.shape == X.shape


def test_same_seed_same_intervals():
    X = pd.DataFrame(gappy(), columns=[f"f{i}" for i in range(10)])
    model = SkellamSNMF(K, random_state=0).fit(X)
    one, other = (bootstrap(model, X, n_draws=4, n_jobs=n, random_state=5) for n in (1, 2))
    for name in PARTS:
        assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    X = gappy()
    model = SkellamSNMF(K, random_state=0).fit(X)
    path = tmp_path / "draws.ckpt"
    options = {"n_draws": 6, "random_state": 3, "n_jobs": 1}
    expected = bootstrap(model, X, **options)
    refit, made = module._refit, []

    def stopped(refits, number, seed):
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(number)
        return refit(refits, number, seed)

    monkeypatch.setattr(module, "_refit", stopped)
    with pytest.raises(KeyboardInterrupt):
        bootstrap(model, X, checkpoint=path, **options)
    first = list(made)

    def noted(refits, number, seed):
        made.append(number)
        return refit(refits, number, seed)

    monkeypatch.setattr(module, "_refit", noted)
    found = bootstrap(model, X, checkpoint=path, **options)
    assert sorted(made) == list(range(6)) and first == [0, 1]
    for name in PARTS:
        assert_array_equal(getattr(found, name), getattr(expected, name))
    again = bootstrap(model, X, checkpoint=path, **{**options, "random_state": None})
    assert_array_equal(again.components, expected.components)
    for wrong, words in (
        ({"n_draws": 7}, "n_draws=6, not 7"),
        ({"random_state": 4}, "another random_state"),
        ({"kind": "rows"}, "another kind"),
    ):
        with pytest.raises(ValueError, match=words):
            bootstrap(model, X, checkpoint=path, **{**options, **wrong})
    with pytest.raises(ValueError, match="other data, or another model"):
        bootstrap(
            SkellamSNMF(K, random_state=1, tol=1e-3).fit(X + 1), X, checkpoint=path, **options
        )
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="is no checkpoint of this bootstrap"):
        bootstrap(model, X, checkpoint=path, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_draws": 1}, "n_draws must be an integer of at least 2; found 1"),
        ({"n_draws": 10**9}, "n_draws must be at most"),
        ({"level": 1.0}, "level must be between 0 and 1"),
        ({"kind": "cells"}, "kind must be"),
        ({"frozen": [7]}, "frozen must hold indices from 0 to 2"),
        ({"cell_noise": -1.0}, "cell_noise"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"checkpoint_every": -1}, "checkpoint_every"),
    ],
)
def test_bad_arguments(options, words):
    X = gappy()
    model = SkellamSNMF(K, random_state=0, tol=1e-2).fit(X)
    with pytest.raises(ValueError, match=words):
        bootstrap(model, X, **options)


def test_bad_models_and_data():
    X = gappy()
    model = EuclideanSNMF(K, random_state=0).fit(X)
    with pytest.raises(ValueError, match="model must be a fitted"):
        bootstrap("model", X)
    with pytest.raises(ValueError, match="not fitted"):
        bootstrap(SkellamSNMF(K), X)
    with pytest.raises(ValueError, match="120 samples; found 50"):
        bootstrap(model, X[:50])
    with pytest.raises(ValueError, match="cell_noise must be None"):
        bootstrap(model, X, cell_noise=1.0)
    lonely = X.copy()
    lonely[:, 0] = np.nan
    lonely[0, 0] = 1.0
    alone = SkellamSNMF(K, random_state=0).fit(lonely)
    monkey = RandomState(0)
    refits = module._checked(alone, lonely, "rows", None, None)
    assert all(0 in refits._drawn_rows(monkey) for _ in range(20))


def test_every_estimator_takes_part():
    """Whoever adds an estimator says how it is refitted."""
    for estimator in (SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF):
        assert issubclass(estimator, BaseSNMF)
        assert estimator._refitting is not None and estimator._drawn_like is not None
