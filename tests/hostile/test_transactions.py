"""A fit that fails, wherever it does, leaves the estimator as it was, to the last bit."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, PriorLearner, SkellamSNMF, load
from seminmf._algorithms import loop
from seminmf._estimators import base, runs, sampled, validation

X = np.random.RandomState(0).normal(size=(12, 4)) * 3
NEW = np.random.RandomState(1).normal(size=(9, 5)) * 100
ESTIMATORS = {
    "skellam": SkellamSNMF(3, n_init=1, random_state=0, max_iter=15),
    "em": SkellamSNMF(3, n_init=1, solver="em", likelihood="integer", random_state=0, max_iter=15),
    "kmeans": SkellamSNMF(3, n_init=1, init="kmeans", random_state=0, max_iter=15),
    "bayesian": BayesianSkellamSNMF(
        3, posterior="mean-field", random_state=0, max_iter=15, n_init=1
    ),
    "draws": BayesianSkellamSNMF(3, random_state=0, max_iter=15, n_init=1),
    "euclidean": EuclideanSNMF(3, random_state=0, max_iter=15),
}
METHODS = ("transform", "predict", "impute", "score", "sources")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def data(name: str) -> np.ndarray:
    return np.round(X) if name == "em" else X


def fitted(name: str):
    return clone(ESTIMATORS[name]).fit(data(name))


def methods_of(model) -> list[str]:
    return [method for method in METHODS if hasattr(model, method)]


def state(estimator) -> bytes:
    return pickle.dumps(vars(estimator))


def fail(monkeypatch, module, name, error, *, after=0):
    """Let a function fail when it has been called `after` times."""
    original, calls = getattr(module, name), []

    def failing(*args, **named):
        calls.append(None)
        if len(calls) > after:
            raise error
        return original(*args, **named)

    monkeypatch.setattr(module, name, failing)


REFUSED = {
    "text": lambda model: model.fit([["a", "b"], ["c", "d"]]),
    "infinite": lambda model: model.fit([[np.inf, 1.0], [2.0, 3.0]]),
    "gaps only": lambda model: model.fit(np.full((3, 4), np.nan)),
    "no samples": lambda model: model.fit(np.empty((0, 4))),
    "one axis": lambda model: model.fit(np.ones(4)),
    "weights": lambda model: model.fit(NEW.round(), sample_weight=-np.ones(len(NEW))),
    "activations": lambda model: model.fit(
        NEW.round(),
        **{
            "activation_shape"
            if isinstance(model, BayesianSkellamSNMF)
            else "activations": np.ones((2, 2))
        },
    ),
    "frozen": lambda model: model.fit(NEW.round(), frozen=[17]),
    "components": lambda model: model.set_params(n_components=0).fit(NEW.round()),
    "init": lambda model: model.set_params(init="nowhere").fit(NEW.round()),
    "jobs": lambda model: model.set_params(n_jobs=0).fit(NEW.round()),
    "seed": lambda model: model.set_params(random_state="x").fit(NEW.round()),
    "checkpoint": lambda model: model.fit(NEW.round(), checkpoint="/dev/null/nowhere"),
}
# Where work is under way: functions of a fit, in the order in which they are called.
PLACES = {
    "features": (validation, "record_features", 0),
    "before the first step": (runs, "run", 0),
    "while iterating": (loop.Stopping, "is_met", 3),
    "after all runs": (runs, "compared", 0),
    "at the end": (base.BaseSNMF, "_warn", 0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("way", REFUSED)
def test_what_is_refused_leaves_the_old_model(name, way):
    model = fitted(name)
    before, parameters = state(model), model.get_params()
    answers = {method: getattr(model, method)(data(name)) for method in methods_of(model)}
    with pytest.raises((ValueError, TypeError, OSError)):
        REFUSED[way](model)
    for method, answer in answers.items():
        assert_array_equal(getattr(model, method)(data(name)), answer)
    assert state(model.set_params(**parameters)) == before


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("way", REFUSED)
def test_a_first_fit_that_is_refused_leaves_nothing(name, way):
    model = clone(ESTIMATORS[name])
    with pytest.raises((ValueError, TypeError, OSError)):
        REFUSED[way](model)
    check_unfitted(model, name)


def check_unfitted(model, name):
    assert not [attribute for attribute in vars(model) if attribute.endswith("_")]
    for method in methods_of(model):
        with pytest.raises(NotFittedError):
            getattr(model, method)(data(name))
    for call in (
        lambda: model.inverse_transform(np.ones((2, 3))),
        lambda: model.predict_cells([0], [0]),
        lambda: model.save("nothing.safetensors"),
    ):
        with pytest.raises(NotFittedError):
            call()


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_failures_inside_of_a_fit(monkeypatch, name, place, error):
    model, empty = fitted(name), clone(ESTIMATORS[name])
    before = state(model)
    module, function, after = PLACES[place]
    if name == "draws" and place in ("after all runs", "at the end"):
        module, function = sampled, "from_chain"
    for estimator, check in (
        (model, lambda: state(model) == before),
        (empty, lambda: check_unfitted(empty, name) is None),
    ):
        estimator.set_params(n_init=2)
        with monkeypatch.context() as patch:
            fail(patch, module, function, error, after=after)
            try:
                estimator.fit(NEW.round())
            except type(error):
                estimator.set_params(n_init=1)
                assert check()
            else:  # Ctrl-C while iterating ends a fit that is then as good as it got
                assert isinstance(error, KeyboardInterrupt)
                assert estimator.stop_reason_ == "interrupted"
                assert estimator.n_features_in_ == NEW.shape[1]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_warnings_that_are_errors(name):
    model = fitted(name).set_params(max_iter=2)
    before = state(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Warning, match=r"No convergence|have not settled|could reach"):
            model.fit(NEW.round())
    assert state(model) == before


@pytest.mark.parametrize("name", ["skellam", "em", "bayesian"])
@pytest.mark.parametrize("first", [True, False])
def test_a_batch_that_fails_leaves_the_stream(monkeypatch, name, first):
    model = clone(ESTIMATORS[name])
    if not first:
        model.partial_fit(data(name)).partial_fit(data(name)[::-1])
    before = state(model)
    for bad in ([["a"]], np.full((2, 4), np.inf), np.ones((2, 9)) if not first else np.ones(3)):
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(bad)
        assert state(model) == before
    for function in ("_publish_stream", "_publish_batch", "_learn"):
        with monkeypatch.context() as patch:
            fail(patch, type(model), function, RuntimeError("broken"))
            with pytest.raises(RuntimeError, match="broken"):
                model.partial_fit(data(name))
        assert state(model) == before


def test_a_learner_that_fails_keeps_its_stream(monkeypatch):
    learner = PriorLearner(BayesianSkellamSNMF(2, random_state=0, max_iter=10))
    for known in (0, 1):
        before = state(learner)
        for bad in ([["a"]], np.full((2, 4), np.inf), np.full((2, 4), np.nan)):
            with pytest.raises((ValueError, TypeError)):
                learner.partial_fit(bad)
            assert state(learner) == before
        for function in ("_publish", "_warn_of_bounds"):
            with monkeypatch.context() as patch:
                fail(patch, PriorLearner, function, RuntimeError("broken"))
                for call in (learner.partial_fit, lambda matrix: learner.fit([matrix, matrix])):
                    with pytest.raises(RuntimeError, match="broken"):
                        call(X)
                    assert state(learner) == before
        if not known:
            learner.partial_fit(X)


def test_a_refit_leaves_nothing_of_the_fit_before():
    pandas = pytest.importorskip("pandas")
    model = SkellamSNMF(2, random_state=0, max_iter=10)
    model.fit(pandas.DataFrame(X, columns=list("abcd")))
    model.partial_fit(pandas.DataFrame(X, columns=list("abcd")))
    model.note = "a user's own"
    again = clone(model).fit(NEW)
    model.fit(NEW)
    assert set(vars(model)) == {*vars(again), "note"}
    assert_array_equal(model.transform(NEW), again.transform(NEW))


CHANGES = {
    "n_components": 1,
    "likelihood": "integer",
    "check_integer": False,
    "sparse_zeros": "observed",
    "activation_shape_prior": 3.0,
    "activation_rate_prior": 7.0,
    "atom_shape_prior": 2.0,
    "solver": "em",
    "init": "kmeans",
    "max_iter": 1,
    "tol": 0.1,
    "dispersion": 5.0,
    "noise": None,
    "positive_components": True,
    "fit_intercept": True,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["skellam", "bayesian", "euclidean"])
def test_parameters_are_for_the_next_fit(tmp_path, name, change):
    model = fitted(name)
    if change not in model.get_params():
        return
    answers = {method: getattr(model, method)(X) for method in methods_of(model)}
    other_solver = name == "euclidean" and change == "solver"
    model.set_params(**{change: "multiplicative" if other_solver else CHANGES[change]})
    model.save(tmp_path / "model.safetensors")
    for same in (model, load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(model))):
        assert same.get_params()[change] == model.get_params()[change]
        for method, answer in answers.items():
            assert_array_equal(getattr(same, method)(X), answer)


@pytest.mark.parametrize("change", ["n_components", "likelihood", "sparse_zeros"])
@pytest.mark.parametrize("name", ["skellam", "bayesian"])
def test_a_stream_does_not_change_its_meaning(name, change):
    model = clone(ESTIMATORS[name]).partial_fit(X)
    kept = model.get_params()[change]
    model.set_params(**{change: CHANGES[change]})
    with pytest.raises(ValueError, match=f"{change} must stay as it was .*{kept!r}"):
        model.partial_fit(np.round(X))


def test_what_users_own_is_theirs():
    rate, weights = np.full((1, 3), 0.5), np.ones(len(X))
    atoms, start = np.ones((2, 3, 4)), np.ones((len(X), 3))
    model = SkellamSNMF(3, activation_rate_prior=rate, random_state=0, max_iter=10)
    returned = model.fit_transform(
        X, atoms=atoms, activations=start, frozen=[0], sample_weight=weights
    )
    before, answer = state(model.set_params(activation_rate_prior=1.0)), model.transform(X)
    for own in (rate, weights, atoms, start, returned):
        own[...] = 1e6
    assert state(model) == before
    assert_array_equal(model.transform(X), answer)
    for estimator in (BayesianSkellamSNMF(3, tol=1e-2), EuclideanSNMF(3, tol=1e-2)):
        estimator.fit_transform(X)[...] = -1
        assert np.all(estimator.activations_ >= 0)
