"""No NaN and no infinity ever comes out of finite input, however hostile."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.exceptions import ConvergenceWarning

from seminmf import BayesianSkellamSNMF, SkellamSNMF

MAX_ITER = 30

# Orders of magnitude, for the largest cells of a matrix and below them.
REACH = {"float64": (-300, 299), "float32": (-15, 20)}
SPREAD = {"float64": 18, "float32": 8}

ESTIMATORS = {
    "map": lambda **options: SkellamSNMF(**options),
    "bayesian": lambda **options: BayesianSkellamSNMF(**options),
    "bayesian, M = ∞": lambda likelihood="real", **options: BayesianSkellamSNMF(
        likelihood=likelihood, **({"dispersion": 0.0} if likelihood == "real" else {}) | options
    ),
}

shapes = st.tuples(st.integers(1, 6), st.integers(1, 5))
signs = st.sampled_from([-1.0, 0.0, 1.0])


@st.composite
def real_matrices(draw, dtype="float64"):
    shape = draw(shapes)
    top = draw(st.integers(*REACH[dtype]))
    spread = draw(st.integers(0, SPREAD[dtype]))
    mantissas = draw(arrays(np.float64, shape, elements=st.floats(1.0, 9.0)))
    depths = draw(arrays(np.float64, shape, elements=st.floats(0.0, spread)))
    sign = draw(arrays(np.float64, shape, elements=signs))
    return (sign * mantissas * 10.0 ** (top - depths)).astype(dtype)


@st.composite
def integer_matrices(draw, dtype="float64"):
    largest = 10 ** draw(st.integers(0, 15 if dtype == "float64" else 7))
    elements = st.integers(-largest, largest) | st.integers(-2, 2)
    return draw(arrays(np.int64, draw(shapes), elements=elements)).astype(dtype)


@st.composite
def gaps(draw, matrices):
    """A matrix with gaps, rows and columns of gaps or zeros, and one observed cell at least."""
    X = draw(matrices).copy()
    for axis, size in enumerate(X.shape):
        lines = draw(st.sets(st.integers(0, size - 1), max_size=2))
        index = (sorted(lines), slice(None)) if axis == 0 else (slice(None), sorted(lines))
        X[index] = draw(st.sampled_from([np.nan, 0.0]))
    holes = draw(arrays(np.bool_, X.shape, elements=st.booleans()))
    if draw(st.booleans()):
        X[holes] = np.nan
    if np.isnan(X).all():
        X[0, 0] = draw(st.sampled_from([0.0, 1.0, -3.0]))
    return X


priors = st.fixed_dictionaries(
    {
        "activation_shape_prior": st.sampled_from([1.0, 1.0, 0.3, 4.0]),
        "activation_rate_prior": st.sampled_from([1e-3, 1e-3, 1e-9, 5.0]),
        "atom_shape_prior": st.sampled_from([1.0, 1.0, 0.3, 4.0]),
    }
)
options = st.fixed_dictionaries(
    {
        "n_components": st.integers(1, 8),
        "init": st.sampled_from(["random", "kmeans", "svd", "prior"]),
        "random_state": st.integers(0, 99),
    }
)

# The same examples in every run: a suite that fails now and then helps nobody. They are small, and
# need no shrinking.
quickly = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def fit(estimator, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*have no observed cell")
        # K-means has found fewer clusters than asked for: two samples are almost the same.
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        # Some of these data are zeros, or nothing against the prior.
        warnings.filterwarnings(
            "ignore", message="Next to nothing is explained|Components? .* empty"
        )
        return estimator.set_params(max_iter=MAX_ITER, n_jobs=1).fit(X)


def assert_sane(model, X, rtol):
    """Every number that can be had from a fit is finite, and the trace never falls."""
    # A single run has no stability.
    no_numbers = {"stability_", "component_stability_", "stop_reason_", "solver_"}
    numbers = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and name not in no_numbers
    }
    numbers |= {
        "components_": model.components_,
        "transform": model.transform(X),
        "impute": model.impute(X),
        "sources": model.sources(X),
        "predict": model.predict(X),
        "score": model.score(X),
        "amounts": model.amounts_,
        "r2": model.r2(X),
        "cells": model.predict_cells(np.arange(len(X))[:, None], np.arange(X.shape[1])),
    }
    if isinstance(model, BayesianSkellamSNMF):
        numbers["sample"] = np.concatenate([draw.ravel() for draw in model.sample(2)])
        numbers["interval"] = np.concatenate([np.ravel(i) for i in model.interval(n_draws=5)])
        numbers["imputed"] = np.stack(model.impute(X, return_interval=True, n_draws=5))
    for name, value in numbers.items():
        assert np.isfinite(np.asarray(value, dtype=np.float64)).all(), name
    assert_never_falls(model, X, rtol)
    np.testing.assert_allclose(model.atoms_.sum(axis=(0, 2)), 1.0, rtol=max(rtol, 1e-9))
    assert model.atoms_.min() >= 0 and model.activations_.min() >= 0


def assert_never_falls(model, X, rtol):
    """But for rounding, also that of the terms of the sum, which may cancel."""
    total = np.nansum(np.abs(X, dtype=np.float64))
    if isinstance(model, BayesianSkellamSNMF):
        trace = model.lower_bounds_
        shape = max(total / model.dispersion_, model.activation_shape_.sum(dtype=np.float64))
        size = shape * (1 + np.log1p(shape))  # α̂ ψ(α̂) and its like
    else:
        trace, size = model.objectives_, total
    slack = rtol * np.abs(trace).max() + 30 * np.finfo(X.dtype).eps * size
    if getattr(model, "posterior_", None) != "correlated":  # draws rise and fall
        assert np.diff(trace).min(initial=0.0) >= -slack


def prior_of(shape, rate=1e-3, atom_shape=1.0):
    return {
        "activation_shape_prior": shape,
        "activation_rate_prior": rate,
        "atom_shape_prior": atom_shape,
    }


ONE_COMPONENT = {"n_components": 1, "init": "random", "random_state": 0}
FIVE_COMPONENTS = {"n_components": 5, "init": "prior", "random_state": 0}


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
@quickly
@given(X=gaps(real_matrices()), prior=priors, others=options)
@example(X=np.array([[-3e-217], [0.0], [0.0]]), prior=prior_of(0.3, 5.0), others=ONE_COMPONENT)
@example(X=np.array([[2e-121], [2e-114]]), prior=prior_of(0.3), others=FIVE_COMPONENTS)
@example(X=np.array([[0.0]]), prior=prior_of(4.0), others=ONE_COMPONENT)
@example(X=np.array([[0.0], [2e-302]]), prior=prior_of(4.0, 5.0), others=FIVE_COMPONENTS)
def test_real_data(make, X, prior, others):
    assert_sane(fit(make(**prior, **others), X), X, rtol=1e-10)


@pytest.mark.parametrize("make", [ESTIMATORS["map"], ESTIMATORS["bayesian"]])
@quickly
@given(X=gaps(integer_matrices()), prior=priors, others=options)
def test_integer_data(make, X, prior, others):
    estimator = make(likelihood="integer", **prior, **others)
    assert_sane(fit(estimator, X), X, rtol=1e-10)


@pytest.mark.parametrize("make", [ESTIMATORS["map"], ESTIMATORS["bayesian"]])
@quickly
@given(X=gaps(real_matrices("float32")), prior=priors, others=options)
@example(X=np.array([[8e-16]], dtype=np.float32), prior=prior_of(4.0), others=FIVE_COMPONENTS)
@example(
    X=np.array([[1e-17, 1e-11], [3e-17, 0.0]], dtype=np.float32),
    prior=prior_of(4.0, 1e-9),
    others=FIVE_COMPONENTS,
)
@example(X=np.array([[0.0]], dtype=np.float32), prior=prior_of(1.0), others=ONE_COMPONENT)
# The third sample says nothing of how large its activations are.
@example(
    X=np.array(
        [
            [0.0, 0.0, 0.0, -2.1643164],
            [np.nan, np.nan, 0.0, 0.0],
            [np.nan, 0.0, np.nan, np.nan],
            [0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0],
            [np.nan, 0.0, 0.2981079, 0.0],
        ],
        dtype=np.float32,
    ),
    prior=prior_of(0.3, 1e-9, 4.0),
    others={"n_components": 6, "init": "random", "random_state": 8},
)
def test_real_data_in_float32(make, X, prior, others):
    assert_sane(fit(make(**prior, **others), X), X, rtol=1e-4)


@pytest.mark.parametrize("make", [ESTIMATORS["map"], ESTIMATORS["bayesian"]])
@settings(quickly, max_examples=25)
@given(X=gaps(integer_matrices("float32")), prior=priors, others=options)
def test_integer_data_in_float32(make, X, prior, others):
    estimator = make(likelihood="integer", **prior, **others)
    assert_sane(fit(estimator, X), X, rtol=1e-4)


def with_(X, value, *places):
    X = np.array(X, dtype=float)
    for place in places:
        X[place] = value
    return X


NAMED = {
    "all zero": np.zeros((4, 3)),
    "one cell": np.array([[5.0]]),
    "one zero cell": np.array([[0.0]]),
    "one row": np.array([[3.0, -2.0, 0.0, 8.0]]),
    "one column": np.array([[3.0], [-2.0], [0.0]]),
    "constant": np.full((5, 4), -7.0),
    "zero row and column": with_(np.full((5, 4), 3.0), 0.0, 2, (slice(None), 1)),
    "missing row and column": with_(np.full((5, 4), 3.0), np.nan, 2, (slice(None), 1)),
    "one observed cell": with_(np.full((5, 4), np.nan), 4.0, (3, 2)),
    "zeros and gaps": with_(np.zeros((4, 3)), np.nan, (0, 0), 2),
    "one cell far above the others": with_(np.ones((5, 4)), 1e15, (1, 1)),
    "one cell alone": with_(np.zeros((5, 4)), -1e15, (1, 1)),
    "two signs of the same": np.array([[1.0, -1.0], [-1.0, 1.0]]) * 1e6,
}
REAL_ONLY = {
    "smallest floats": np.full((4, 3), 5e-324),
    "subnormal and zero": with_(np.zeros((4, 3)), 1e-310, 1),
    "huge": with_(np.full((4, 3), 1e299), -1e299, 0),
    "huge and tiny": with_(np.full((4, 3), 1e299), 1e-299, 0, (slice(None), 1)),
    "spread of 18 orders": 10.0 ** np.linspace(-9, 9, 20).reshape(5, 4),
}


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize("n_components", [1, 7])
@pytest.mark.parametrize("name", [*NAMED, *REAL_ONLY])
def test_named_matrices(make, n_components, name):
    X = (NAMED | REAL_ONLY)[name]
    for likelihood in ["real", "integer"] if name in NAMED else ["real"]:
        for init, shape in zip(
            ("random", "kmeans", "svd", "prior", "random"), (1.0, 1.0, 1.0, 0.3, 4.0), strict=True
        ):
            estimator = make(
                n_components=n_components,
                likelihood=likelihood,
                init=init,
                random_state=0,
                **prior_of(shape, atom_shape=shape),
            )
            assert_sane(fit(estimator, X), X, rtol=1e-10)


def test_other_data_than_fitted():
    """What transform sees may be of quite another size than what was fitted."""
    X = np.random.default_rng(0).normal(size=(8, 4))
    new = np.array([[0.0] * 4, [1e-290] * 4, [1e290] * 4, [-1e100, 1e-100, 0.0, np.nan], X[0]])
    for make in ESTIMATORS.values():
        model = fit(make(n_components=2, random_state=0), X)
        if model.noise_.any():  # which has a size
            with pytest.raises(ValueError, match="a model with a dispersion of"):
                model.transform(new)
            model = fit(make(n_components=2, random_state=0, dispersion=0.0), X)
        for result in (model.transform(new), model.impute(new), model.sources(new)):
            assert np.isfinite(result).all()
        assert np.isfinite(model.score(new))
