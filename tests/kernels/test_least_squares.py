"""A sweep of least squares: its sums against NumPy, and rules that never raise the loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from squares_in_gaps import cost_of_gaps

from seminmf._data.dense import DenseSource
from seminmf._data.executor import LocalExecutor
from seminmf._kernels.euclidean.least_squares import DESCEND, GAP_WEIGHT, KEEP, MULTIPLY, sweep

SIZES = [(5, 1, 2), (37, 5, 3), (70, 21, 4)]


def draw(sizes, gaps):
    n_samples, n_features, n_components = sizes
    random = np.random.default_rng(0)
    X = random.normal(size=(n_samples, n_features))
    X[random.random(X.shape) < gaps] = np.nan
    return {
        "X": X,
        "sample_weight": random.uniform(0.0, 2.0, n_samples),
        "components": random.normal(size=(n_components, n_features)),
        "activations": random.gamma(1.0, 1.0, (n_samples, n_components)),
    }


def run(problem, rule, unit=1.0, **options):
    problem = dict(problem)
    X = problem.pop("X")
    complete = not np.isnan(X).any()
    return sweep(
        DenseSource(X),
        unit,
        **problem,
        executor=LocalExecutor(),
        rule=rule,
        complete=complete,
        **options,
    )


def loss_of(problem, activations):
    X, components, weights = (problem[name] for name in ("X", "components", "sample_weight"))
    errors = np.nansum(weights[:, None] * (X - activations @ components) ** 2)
    return errors + cost_of_gaps(X, activations, components, weights)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sums(sizes, gaps):
    problem = draw(sizes, gaps)
    found = run(problem, KEEP)
    activations, seen = problem["activations"], ~np.isnan(problem["X"])
    weighted = problem["sample_weight"][:, None] * activations
    assert_array_equal(found.activations, activations)
    assert found.loss == pytest.approx(loss_of(problem, activations), rel=1e-12)
    assert_allclose(found.products, weighted.T @ np.nan_to_num(problem["X"]), rtol=1e-11)
    grams = np.einsum("jk,jl,ji->ikl", weighted, activations, seen.astype(float))
    in_gaps = np.einsum("jk,jk,ji->ik", weighted, activations, (~seen).astype(float))
    grams += GAP_WEIGHT * in_gaps[:, :, None] * np.eye(in_gaps.shape[1])
    assert_allclose(np.broadcast_to(found.grams, grams.shape), grams, rtol=1e-11)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("rule", [MULTIPLY, DESCEND], ids=["multiply", "descend"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_no_rule_raises_the_loss_of_a_sample(sizes, rule, gaps):
    problem = draw(sizes, gaps)
    found = run(problem, rule)
    assert (found.activations >= 0).all()
    X, components = problem["X"], problem["components"]
    losses = [
        np.nansum((X - activations @ components) ** 2, axis=1)
        + [cost_of_gaps(X[[j]], a[None], components) for j, a in enumerate(activations)]
        for activations in (problem["activations"], found.activations)
    ]
    assert (losses[1] <= losses[0] * (1 + 1e-12)).all()
    assert losses[1].sum() < losses[0].sum()


def test_what_is_extrapolated_is_what_is_summed_up():
    problem = draw((37, 5, 3), 0.3)
    before = problem["activations"] * np.random.default_rng(1).uniform(0.5, 1.5, (37, 3))
    found = run(problem, DESCEND, before=before, momentum=0.7)
    plain = run(problem, DESCEND)
    assert_array_equal(found.activations, plain.activations)
    way = plain.activations - before
    assert_allclose(found.ahead, np.maximum(plain.activations + 0.7 * way, 0.0), rtol=1e-12)
    again = run({**problem, "activations": found.ahead}, KEEP)
    assert_allclose(found.products, again.products, rtol=1e-12)
    assert_allclose(found.grams, again.grams, rtol=1e-12)


def test_x_is_seen_in_its_unit():
    problem = draw((37, 5, 3), 0.3)
    scaled = run({**problem, "X": 4 * problem["X"]}, DESCEND, unit=4.0)
    for here, there in zip(run(problem, DESCEND), scaled, strict=True):
        assert_array_equal(here, there)
