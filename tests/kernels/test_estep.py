"""The E-step, dense and sparse, against a loop over the cells."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import reference
from kinds import stored
from numpy.testing import assert_allclose, assert_array_equal

from seminmf._data import source as sources
from seminmf._data.dense import DenseSource
from seminmf._data.executor import LocalExecutor
from seminmf._data.sparse import SparseSource
from seminmf._kernels.em import estep as dense_estep
from seminmf._kernels.em import sparse_estep
from seminmf._kernels.em.estep import Expectations, estep, evaluate_cells
from seminmf._kernels.em.sparse_estep import estep_of_cells
from seminmf._model.likelihoods import Integer, Real

LIKELIHOODS = {"real": Real(unit=8.0), "integer": Integer()}
# Samples, features and components. Few features have samples in the lanes, many have features
# there; none of these sizes fills a vector, but for 8 and 16 features.
SIZES = [(1, 1, 1), (19, 3, 2), (7, 5, 9), (21, 8, 3), (5, 16, 4), (9, 37, 5)]
GAPS = {"complete": 0.0, "some gaps": 0.3, "mostly gaps": 0.9}
TOLERANCES = {np.float64: 1e-12, np.float32: 2e-5}


class Case(NamedTuple):
    """An E-step, and what it is to return; X is in its own unit, activations are in the model's."""

    X: np.ndarray
    likelihood: Any
    activations: np.ndarray
    atoms: np.ndarray
    weights: np.ndarray
    expected: Expectations


@cache
def make_case(kind, sizes, share_of_gaps=0.3):
    n_samples, n_features, n_components = sizes
    random = np.random.default_rng(n_samples)
    likelihood = LIKELIHOODS[kind]
    X = random.normal(0.0, 8.0, (n_samples, n_features))
    X = X.round() if kind == "integer" else X
    X[random.random(X.shape) < share_of_gaps] = np.nan
    activations = random.gamma(1.0, 8.0 / likelihood.unit, (n_samples, n_components))
    atoms = random.dirichlet(np.ones(2 * n_features), n_components)
    atoms = atoms.reshape(n_components, 2, n_features).transpose(1, 0, 2).copy()
    weights = random.uniform(0.0, 3.0, n_samples)
    case = (X, likelihood, activations, atoms, weights)
    return Case(*case, expected=slow_estep(kind, X / likelihood.unit, *case[2:]))


def slow_estep(kind, X, activations, atoms, weights):
    counts, atom_counts = reference.expected_counts(X, activations, atoms, kind, weights)
    rates = activations @ atoms
    data_term = sum(
        weights[j] * reference.log_likelihood(X[j, i], rates[:, j, i], kind)
        for j, i in zip(*np.nonzero(~np.isnan(X)), strict=True)
    )
    return Expectations(
        activations=counts / activations, atoms=atom_counts / atoms, data_term=data_term
    )


def run(case, dtype=np.float64, sparse=False, n_threads=1):
    """What the library returns, from sources and factors of a type."""
    X = case.X.astype(dtype)
    source = SparseSource(stored(X)) if sparse else DenseSource(X)
    return (estep_of_cells if sparse else estep)(
        source,
        likelihood=case.likelihood,
        activations=case.activations.astype(dtype),
        atoms=case.atoms.astype(dtype),
        sample_weight=case.weights,
        executor=LocalExecutor(n_threads),
    )


def assert_expected(found, expected, tolerance=1e-12):
    assert_allclose(found.activations, expected.activations, rtol=tolerance)
    assert_allclose(found.atoms, expected.atoms, rtol=tolerance, atol=tolerance)
    assert found.data_term == pytest.approx(expected.data_term, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_dense(kind, sizes, dtype):
    case = make_case(kind, sizes)
    found = run(case, dtype)
    assert found.activations.dtype == dtype and found.atoms.dtype == np.float64
    assert_expected(found, case.expected, TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_sparse(kind, sizes, dtype):
    """Cells that are not stored are gaps. All is computed in float64: only X has been rounded."""
    case = make_case(kind, sizes)
    found = run(case, dtype, sparse=True)
    assert found.activations.dtype == dtype and found.atoms.dtype == np.float64
    assert_expected(found, case.expected, TOLERANCES[dtype])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("sizes", [(19, 3, 2), (9, 37, 5)], ids=str)
def test_gaps(sizes, gaps, sparse):
    case = make_case("real", sizes, GAPS[gaps])
    assert_expected(run(case, sparse=sparse), case.expected)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_without_data_all_expectations_are_the_rates(sparse):
    """U = 1 in a gap: sums of the atoms and of the weighted activations are left."""
    case = make_case("real", (9, 37, 5))
    found = run(case._replace(X=np.full(case.X.shape, np.nan)), sparse=sparse)
    assert found.data_term == 0
    assert_allclose(found.activations, np.tile(case.atoms.sum(axis=(0, 2)), (9, 1)))
    sums = case.weights @ case.activations
    assert_allclose(found.atoms, np.broadcast_to(sums[:, None], case.atoms.shape))


@pytest.mark.parametrize("sizes", [(19, 3, 2), (9, 37, 5)], ids=str)
def test_blocks_that_follow_each_other(monkeypatch, sizes):
    """What a block leaves in its workspace is not seen by the next."""
    monkeypatch.setattr(dense_estep, "_BLOCK", 1)
    case = make_case("integer", sizes)
    assert_expected(run(case), case.expected)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("sizes", [(150, 3, 2), (150, 16, 5)], ids=str)
def test_tasks_on_threads(monkeypatch, sizes, sparse):
    """The sums of many tasks are the same, to the last bit, on any number of threads."""
    monkeypatch.setattr(sources, "_TASK", 64)
    monkeypatch.setattr(sparse_estep, "_SQUARE", 1)
    case = make_case("real", sizes)
    one, two = (run(case, sparse=sparse, n_threads=n) for n in (1, 2))
    assert_expected(one, case.expected)
    for here, there in zip(one, two, strict=True):
        assert_array_equal(here, there)


@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_cells_one_by_one(kind):
    case = make_case(kind, (9, 37, 5))
    likelihood = LIKELIHOODS[kind].in_unit_of_data()
    rates = case.likelihood.unit * (case.activations @ case.atoms)
    found = evaluate_cells(likelihood, case.X, *rates)
    for j, i in np.ndindex(case.X.shape):
        x, rate = case.X[j, i], rates[:, j, i]
        u = reference.multipliers(x, rate, kind)
        assert_allclose([found.u0[j, i], found.u1[j, i]], u, rtol=1e-11)
        value = 0.0 if np.isnan(x) else reference.log_likelihood(x, rate, kind)
        assert found.log_likelihood[j, i] == pytest.approx(value, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("unit", [2.0**-900, 2.0**900])
def test_real_cells_have_no_unit(unit):
    """D is homogeneous, and squares of cells of any size are in range."""
    random = np.random.default_rng(0)
    x, (rate0, rate1) = random.normal(size=50), random.gamma(1.0, 1.0, (2, 50))
    here, there = (evaluate_cells(Real(), c * x, c * rate0, c * rate1) for c in (1.0, unit))
    assert_array_equal(there.u0, here.u0)
    assert_array_equal(there.u1, here.u1)
    assert_array_equal(there.log_likelihood, unit * here.log_likelihood)
