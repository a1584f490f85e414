"""Compiled code follows sizes without a look: what does not go together is refused before."""

import numpy as np
import pytest
import scipy.sparse

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF
from seminmf._data.dense import DenseSource
from seminmf._data.executor import LocalExecutor
from seminmf._data.opening import sparse_source
from seminmf._kernels.em.estep import estep, evaluate_cells
from seminmf._kernels.em.extrapolation import extrapolate, measure
from seminmf._kernels.em.rows import solve_by_em
from seminmf._kernels.em.sparse_estep import estep_of_cells
from seminmf._kernels.euclidean.least_squares import sweep as least_squares_sweep
from seminmf._kernels.euclidean.nnls import solve_rows
from seminmf._kernels.newton.features import move_features
from seminmf._kernels.newton.sweep import ONE_STEP, RowProblems, sweep
from seminmf._model.likelihoods import Real
from seminmf._model.penalties import Maximum
from seminmf._model.priors import Gamma
from seminmf._numerics.arguments import check_arrays

J, I, K = 7, 5, 3
X = np.ones((J, I))
RIGHT = {
    "activations": np.ones((J, K)),
    "atoms": np.ones((2, K, I)),
    "weights": np.ones(J),
    "shape": np.ones((1, K)),
    "gains": np.ones(J),
    "components": np.ones((K, I)),
}
WRONG = {
    "activations": [np.ones((J, K + 1)), np.ones((J - 1, K)), np.ones(J)],
    "atoms": [np.ones((2, K + 1, I)), np.ones((2, K, I - 1)), np.ones((1, K, I))],
    "weights": [np.ones(J - 1), np.ones((J, 1))],
    "shape": [np.ones((2, K)), np.ones((1, K + 1))],
    "gains": [np.ones(J - 1)],
    "components": [np.ones((K, I + 1)), np.ones((K + 1, I))],
}


def row_problems(given):
    prior = Gamma(given["shape"], np.ones((1, 1)))
    return RowProblems(Real(), Maximum(1.0), prior, given["atoms"], given["weights"])


def least_squares(given):
    rule = {"rule": 0, "complete": True}
    arrays = given["weights"], given["components"], given["activations"]
    least_squares_sweep(DenseSource(X), 1.0, *arrays, LocalExecutor(), **rule)


ENTRIES = {
    "estep": (
        ("activations", "atoms", "weights"),
        lambda given: estep(
            DenseSource(X),
            Real(),
            given["activations"],
            given["atoms"],
            given["weights"],
            LocalExecutor(),
        ),
    ),
    "estep of cells": (
        ("activations", "atoms", "weights"),
        lambda given: estep_of_cells(
            sparse_source(scipy.sparse.eye_array(J, I), "missing"),
            Real(),
            given["activations"],
            given["atoms"],
            given["weights"],
            LocalExecutor(),
        ),
    ),
    "newton": (
        ("activations", "atoms", "weights", "shape", "gains"),
        lambda given: sweep(
            DenseSource(X),
            row_problems(given),
            given["activations"].copy(),
            ONE_STEP,
            LocalExecutor(),
            gains=given["gains"].copy(),
        ),
    ),
    "em of rows": (
        ("activations", "atoms", "weights", "shape"),
        lambda given: solve_by_em(
            DenseSource(X), row_problems(given), given["activations"].copy(), LocalExecutor()
        ),
    ),
    "least squares": (("activations", "components", "weights"), least_squares),
    "m-step": (
        ("activations", "weights", "shape"),
        lambda given: Gamma(given["shape"], np.ones((1, 1))).m_step(
            np.ones((J, K)), given["activations"].copy(), given["weights"], 1.0
        ),
    ),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_sizes_that_do_not_go_together(entry):
    names, call = ENTRIES[entry]
    call(RIGHT)
    for name in names:
        for wrong in WRONG[name]:
            with pytest.raises(ValueError, match="must have the shape"):
                call({**RIGHT, name: wrong})


def test_other_entries():
    with pytest.raises(ValueError, match="components must have the shape"):
        solve_rows(DenseSource(X), 1.0, np.ones((K, I + 1)), LocalExecutor())
    with pytest.raises(ValueError, match="same shape"):
        measure(np.ones((4, 2)), np.ones((4, 2)), np.ones((4, 1)), 1.0)
    with pytest.raises(ValueError, match="same shape"):
        extrapolate(np.ones((4, 2)), np.ones((3, 2)), np.ones((4, 2)), 1.0, 1.0, 1.0)
    with pytest.raises(ValueError):
        evaluate_cells(Real(), np.ones(4), np.ones(3), np.ones(4))
    pairs = K * (K + 1) // 2
    right = [np.ones((2, K, I)), np.ones((3, pairs, I)), np.ones((2, K, I)), 0.0, 0.0]
    right.append(np.zeros((2, K), bool))
    for place, wrong in ((0, np.ones((2, K, I - 1))), (1, np.ones((3, pairs - 1, I)))):
        with pytest.raises(ValueError, match="must have the shape"):
            move_features(*right[:place], wrong, *right[place + 1 :])


def test_types_and_layout():
    sizes = {"J": J, "K": K}
    check_arrays(sizes, a=("JK", np.ones((J, K))), b=("?JK", np.ones((1, 1))))
    with pytest.raises(ValueError, match="float32 or float64; found int64"):
        check_arrays(sizes, a=("JK", np.ones((J, K), dtype=int)))
    with pytest.raises(ValueError, match="C-contiguous"):
        check_arrays(sizes, a=("JK", np.ones((K, J)).T))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (SkellamSNMF(2, max_iter=3), "atoms_"),
        (BayesianSkellamSNMF(2, posterior="mean-field", max_iter=3), "atom_shape_"),
        (EuclideanSNMF(2, max_iter=3), "_components_of_fit"),
    ],
)
@pytest.mark.filterwarnings("ignore:No convergence")
def test_attributes_that_were_tampered_with(model, name):
    values = np.random.RandomState(0).normal(size=(9, 4))
    model.fit(values)
    attribute = getattr(model, name)
    setattr(model, name, attribute[..., :-1])
    for method in ("transform", "predict", "impute", "score"):
        with pytest.raises(ValueError, match="shape"):
            getattr(model, method)(values)
