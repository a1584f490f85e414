"""Batches of samples: what they tell of the atoms, whatever their size."""

import warnings

import numpy as np
import pytest
from kinds import Sliced, chunked, stored
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from seminmf import BayesianSkellamSNMF, SkellamSNMF, load
from seminmf._algorithms import activations, em, minibatch
from seminmf._data.dense import DenseSource
from seminmf._data.disk import DiskSource
from seminmf._estimators.runs import matched_cosines
from seminmf._kernels.newton.sweep import NO_STEP, PRECISE, RowProblems, sweep
from seminmf._model.penalties import Maximum

MODELS = {
    "newton": SkellamSNMF(3, dispersion=0.0, batch_size=50, random_state=0, n_jobs=1),
    "em": SkellamSNMF(3, dispersion=0.0, solver="em", batch_size=50, random_state=0, n_jobs=1),
    "bayesian": BayesianSkellamSNMF(
        3, noise=None, batch_size=50, init="map", random_state=0, n_jobs=1
    ),
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


def table(n_samples=2000, seed=0):
    rng = np.random.default_rng(seed)
    components = np.random.default_rng(99).normal(size=(3, 12))
    X = rng.gamma(0.5, 3.0, (n_samples, 3)) @ components + 0.3 * rng.normal(size=(n_samples, 12))
    X[rng.random(X.shape) < 0.05] = np.nan
    return X


def value(model):
    return model.objective_ if hasattr(model, "objective_") else model.lower_bound_


# --- pieces ---


@pytest.mark.parametrize("size", [1, 7, 20, 50])
def test_batches_are_all_samples_once(size):
    X = np.arange(40.0).reshape(20, 2)
    for source in (DenseSource(X), DiskSource(Sliced(X))):
        parts = list(source.batches(size, np.random.RandomState(0)))
        rows = np.concatenate([np.arange(20)[part] for part in parts])
        assert_array_equal(np.sort(rows), np.arange(20))
        assert max(len(np.arange(20)[part]) for part in parts) == min(size, 20)
    assert all(isinstance(part, slice) for part in parts)
    assert len(parts) == 1 or [part.start for part in parts] != sorted(part.start for part in parts)


def test_the_quadratic_model_has_the_slope_that_was_measured():
    """B + H θ at the atoms where slopes and Hessians were taken; and H is symmetric."""
    model = clone(MODELS["newton"]).set_params(batch_size=None, max_iter=20).fit(table(200))
    with model._problem(model._check_data(table(200)), model._priors, 1.0) as problem:
        atoms = model.atoms_
        problems = RowProblems(
            likelihood=problem.model.likelihood,
            penalty=Maximum(problem.mass),
            prior=problem.model.activations.prior,
            atoms=atoms,
            weights=problem.data.weights,
        )
        found = sweep(
            problem.data.source,
            problems,
            model.activations_ / model._unit,
            NO_STEP,
            problem.executor,
            gains=np.zeros(200),
            collect=True,
        )
        moved = atoms * np.random.default_rng(0).uniform(0.99, 1.01, atoms.shape)
        expected = problem.expectations(model.activations_ / model._unit, moved)
        totals = (model.activations_ / model._unit).sum(axis=0)
    predicted = found.slopes + minibatch._times(found.hessian_blocks, moved - atoms)
    measured = totals[:, None] - expected.atoms
    error = np.abs(predicted - measured).max()
    assert error < 0.05 * np.abs(found.slopes - measured).max()
    other = np.random.default_rng(1).normal(size=atoms.shape)
    left = np.sum(other * minibatch._times(found.hessian_blocks, moved))
    assert left == pytest.approx(
        np.sum(moved * minibatch._times(found.hessian_blocks, other)), rel=1e-9
    )


def test_one_batch_of_all_samples_is_an_m_step(monkeypatch):
    """With the samples in one batch, stepwise EM is EM with activations that are solved for."""
    monkeypatch.setattr(activations, "ROUGH", PRECISE)
    X = table(300)
    options = {"atom_shape_prior": 3.0, "activation_shape_prior": 2.0}
    model = clone(MODELS["em"]).set_params(batch_size=300, max_iter=1, **options).fit(X)
    start = clone(model).set_params(batch_size=None, max_iter=0).fit(X)
    start.activations_ = start.transform(X)
    with start._problem(start._check_data(X), start._priors, 1.0) as problem:
        state = em.Factors(start.activations_ / start._unit, start.atoms_)
        expected, _ = em.step(problem, state)
    assert_allclose(model.atoms_, expected.atoms, rtol=1e-6, atol=1e-9)


# --- fits ---


def test_fit_in_batches_comes_near_a_full_fit(model):
    X = table()
    whole = clone(model).set_params(batch_size=None).fit(X)
    model.fit(X)
    assert model.converged_ and model.stop_reason_ == "tolerance"
    assert len(getattr(model, "objectives_", getattr(model, "lower_bounds_", None))) == (
        model.n_iter_ + 1
    )
    limit = {"newton": 0.03, "em": 0.1}.get(getattr(model, "solver", None), 0.05)
    assert value(whole) - value(model) < limit * abs(value(whole))
    assert_allclose(model.transform(X), model.activations_, rtol=1e-6, atol=1e-9)
    assert_allclose(model.atoms_.sum(axis=(0, 2)), 1.0, rtol=1e-9)


def test_the_size_of_batches_does_not_change_the_model():
    """A prior that weighs as much as the data: were it counted for each batch, it would win."""
    X = table(1000)
    options = {"atom_shape_prior": 200.0, "tol": 1e-5}
    whole = SkellamSNMF(3, dispersion=0.0, random_state=0, n_jobs=1, **options).fit(X)
    for size in (25, 100, 500):
        found = SkellamSNMF(
            3, dispersion=0.0, random_state=0, n_jobs=1, batch_size=size, **options
        ).fit(X)
        assert whole.objective_ - found.objective_ < 0.02 * abs(whole.objective_)


def test_without_a_tolerance_all_epochs_are_done(model):
    """The objectives of epochs fall now and then: that is no end."""
    model.set_params(tol=0, max_iter=25).fit(table(200))
    assert model.n_iter_ == 25 and model.stop_reason_ == "max_iter"


@pytest.mark.parametrize("kind", [stored, Sliced])
@pytest.mark.parametrize("likelihood", ["real", "integer"])
def test_other_data(model, kind, likelihood):
    X = np.round(4 * table(400))
    if likelihood == "integer":
        model.set_params(dispersion="auto")
    model.set_params(likelihood=likelihood, max_iter=3).fit(kind(X))
    assert np.isfinite(value(model)) and np.isfinite(model.atoms_).all()
    assert model.activations_.shape == (400, 3)


@pytest.mark.parametrize("n_features", [12, 64])
def test_single_precision(model, n_features):
    """Few and many features have kernels of their own."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, 3.0, (600, 3)) @ rng.normal(size=(3, n_features))
    single = clone(model).set_params(max_iter=2).fit((X + 1).astype(np.float32))
    double = clone(model).set_params(max_iter=2).fit(X + 1)
    assert single.atoms_.dtype == single.activations_.dtype == np.float32
    assert value(single) == pytest.approx(value(double), rel=1e-4)
    assert single.partial_fit(X[:50].astype(np.float32)).atoms_.dtype == np.float32


def test_same_seed_same_bits(model, many_tasks):
    X = table(300)
    model.set_params(max_iter=2)
    first, second = (clone(model).set_params(n_jobs=n).fit(X) for n in (1, 2))
    assert_array_equal(first.atoms_, second.atoms_)
    assert_array_equal(first.activations_, second.activations_)


def test_frozen_atoms_and_weights(model):
    X = table(300)
    atoms = np.full((2, 3, 12), np.nan)
    atoms[:, 1] = np.random.default_rng(0).dirichlet(np.ones(24)).reshape(2, 12)
    name = "atom_shape" if isinstance(model, BayesianSkellamSNMF) else "atoms"
    given = 50 * atoms if name == "atom_shape" else atoms
    weights = np.r_[np.zeros(150), np.ones(150)]
    model.set_params(max_iter=3)
    model.fit(X, **{name: given, "frozen": [1], "sample_weight": weights})
    assert_allclose(getattr(model, f"{name}_")[:, 1], given[:, 1], rtol=1e-12)
    assert np.isfinite(value(model))


# --- one batch after the other ---


def test_partial_fit_learns(model):
    X, other = table(), table(500, seed=1)
    first = clone(model).partial_fit(X[:50])
    scores = [first.score(other)]
    for _ in range(3):
        for start in range(0, len(X), 50):
            first.partial_fit(X[start : start + 50])
        scores.append(first.score(other))
    assert first.n_iter_ == 121
    assert first.activations_.shape == (50, 3)
    assert np.diff(scores).min() > 0
    # So much of the way from the first batch to a full fit.
    way = clone(model).set_params(batch_size=None).fit(X).score(other) - scores[0]
    share = 0.95 if getattr(model, "solver", None) == "newton" else 0.5
    assert scores[-1] > scores[0] + share * way


def test_partial_fit_counts_the_samples_there_are(model):
    """A prior against many samples weighs less than against few."""
    X = table(100)
    model.set_params(atom_shape_prior=np.linspace(1.0, 500.0, 72).reshape(2, 3, 12))
    atoms = [
        clone(model).set_params(total_samples=total).partial_fit(X).atoms_ for total in (None, 100)
    ]
    assert_array_equal(atoms[0], atoms[1])
    large = clone(model).set_params(total_samples=10_000_000).partial_fit(X)
    counts = large._stream.counts
    assert_allclose(large.atoms_, counts / counts.sum(axis=(0, 2))[:, None], atol=1e-4)
    assert np.abs(atoms[1] - large.atoms_).max() > 1e-3


def test_weights_count_as_samples(model):
    X = table(60)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    found = clone(model).partial_fit(X, sample_weight=weights)
    expected = clone(model).partial_fit(np.repeat(X, weights, axis=0))
    if isinstance(model, SkellamSNMF):  # the start of the other looks at all samples
        assert_allclose(found.atoms_, expected.atoms_, rtol=1e-6, atol=1e-9)
    assert found._stream.n_samples == expected._stream.n_samples == weights.sum()


def test_partial_fit_after_a_fit(model):
    """More of the same data does not undo what a fit has found."""
    X, other = table(), table(500, seed=1)
    model.set_params(batch_size=None).fit(X)
    before = model.score(other)
    for start in range(0, 500, 50):
        model.partial_fit(other[start : start + 50])
    assert model.score(other) > before - 0.02 * abs(before)
    model.fit(X)
    assert not hasattr(model, "_stream")


@pytest.mark.parametrize("name", ["newton", "bayesian"])
def test_sparse_batches(name, monkeypatch):
    """They are made dense for Newton's method, unless they are large."""
    model, X = clone(MODELS[name]).set_params(max_iter=4), table(600)
    rows, columns = np.nonzero(~np.isnan(X))
    S = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
    dense, few = clone(model).fit(X), clone(model).fit(S)
    assert_allclose(few.atoms_, dense.atoms_, rtol=1e-6, atol=1e-9)
    monkeypatch.setattr(minibatch, "_MOST_CELLS", 100)
    assert value(clone(model).fit(S)) < value(few)


# --- errors ---


def test_errors_leave_the_model_as_it_was(model):
    X = table(100)
    model.partial_fit(X)
    before, steps = model.atoms_.copy(), model._stream.n_steps
    for wrong, match in (
        (X[:, :5], "5 features, but .* is expecting 12"),
        (np.where(X > 5, np.inf, X), "finite"),
        (np.full((3, 12), np.nan), "at least one observed cell"),
        (chunked(X), "batch in memory for partial_fit; found a Dask array"),
    ):
        with pytest.raises(ValueError, match=match):
            model.partial_fit(wrong)
    with pytest.raises(ValueError, match=r"n_components must stay as it was .*, 3; found 4"):
        model.set_params(n_components=4).partial_fit(X)
    assert_array_equal(model.atoms_, before)
    assert model._stream.n_steps == steps
    new = clone(model)
    with pytest.raises(ValueError, match="finite"):
        new.partial_fit(np.full((3, 12), np.inf))
    assert not hasattr(new, "atoms_") and not hasattr(new, "n_features_in_")


def test_bad_parameters(model):
    X = table(100)
    for name in ("batch_size", "total_samples"):
        with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1; found 0"):
            clone(model).set_params(**{name: 0}).fit(X)
    with pytest.raises(ValueError, match="batch_size must be None for a Dask array"):
        model.fit(chunked(X))
    start = "activation_shape" if isinstance(model, BayesianSkellamSNMF) else "activations"
    with pytest.raises(ValueError, match=f"{start} must be None for a fit in batches"):
        model.fit(X, **{start: np.ones((100, 3))})
    model.set_params(activation_rate_prior=np.ones((100, 3)))
    with pytest.raises(ValueError, match="activation_rate_prior must be the same for all samples"):
        model.fit(X)


@pytest.mark.parametrize("n_batches", [3, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fitted", [False, True])
def test_a_saved_stream_goes_on(model, fitted, n_batches, tmp_path):
    """After `load` the next batches change a model as they would have without it."""
    X = table(n_samples=2600)
    if fitted:
        model.fit(X[:600])
    for first in range(600, 600 + 50 * n_batches, 50):
        model.partial_fit(X[first : first + 50])
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert_array_equal(again.transform(X), model.transform(X))
    for first in range(2000, 2600, 50):
        for one in (model, again):
            one.partial_fit(X[first : first + 50])
    assert_array_equal(again.atoms_, model.atoms_)
    assert again.n_iter_ == model.n_iter_


# --- Next to noise ---


def noisy_samples(n_samples=4000, n_features=20, n_components=3):
    """Data that are half noise, and the components."""
    rng = np.random.default_rng(0)
    components = rng.normal(size=(n_components, n_features))
    components *= rng.random(components.shape) < 0.5
    signal = rng.gamma(0.5, 2.0, (n_samples, n_components)) @ components
    return signal + rng.normal(size=signal.shape) * signal.std(axis=0), components


def least_cosine(model, components):
    return matched_cosines(model.components_, components).min()


@pytest.fixture(scope="module")
def noisy():
    X, components = noisy_samples()
    return X, components, SkellamSNMF(3, random_state=0).fit(X)


def test_batches_next_to_noise_find_what_a_fit_finds(noisy):
    X, components, whole = noisy
    model = SkellamSNMF(3, random_state=0)
    for start in range(0, len(X), 200):
        model.partial_fit(X[start : start + 200])
        if start == 0:
            first = least_cosine(model, components)
    assert least_cosine(model, components) > first + 0.005
    assert model.r2(X) > whole.r2_ - 0.003
    assert model.solver_ == "newton"
    epochs = SkellamSNMF(3, batch_size=200, max_iter=3, tol=1e-3, random_state=0).fit(X)
    assert least_cosine(epochs, components) > least_cosine(whole, components) - 0.003
    assert epochs.r2_ > whole.r2_ - 0.003


def test_activations_of_batches_are_solved_as_far_as_noise_asks_for():
    """Solved as roughly as without noise, they lead five components away from the truth."""
    X, components = noisy_samples(5000, 50, 5)
    model = SkellamSNMF(5, random_state=0)
    for start in range(0, len(X), 500):
        model.partial_fit(X[start : start + 500])
    assert least_cosine(model, components) > 0.98


def test_a_stream_goes_on_after_a_fit_next_to_noise(noisy):
    """A fit of few samples is a start; one of many hardly moves by another batch."""
    X, components, whole = noisy
    model = SkellamSNMF(3, random_state=0).fit(X[:200])
    first = least_cosine(model, components)
    for start in range(200, len(X), 200):
        model.partial_fit(X[start : start + 200])
    assert least_cosine(model, components) > first + 0.005
    before = whole.components_
    after = clone(whole).fit(X).partial_fit(X[:200]).components_
    assert matched_cosines(before, after).min() > 0.999


def test_the_solver_is_that_of_the_last_batch():
    X = np.random.default_rng(0).normal(size=(600, 8))
    stream, used = SkellamSNMF(2, dispersion=0.0, random_state=0), []
    for start in range(0, len(X), 50):
        used.append(stream.partial_fit(X[start : start + 50]).solver_)
    assert used == ["em"] * 10 + ["newton"] * 2  # after the warm-up
    for solver in ("em", "newton"):
        model = SkellamSNMF(2, solver=solver, batch_size=50, max_iter=1, random_state=0)
        assert model.fit(X).solver_ == solver
