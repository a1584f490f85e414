"""What every combination of likelihood, inference, data and prior must keep.

One set of cases serves all tests here. A new kind of data, solver or acceleration is one more
parameter of the fixture `case`: it must keep the trace and the constraints, and, where it claims
to do the paper's iterations, equal the reference.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import reference
from kinds import KINDS
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from seminmf import BayesianSkellamSNMF, SkellamSNMF
from seminmf._data import disk
from seminmf._model.priors import ACTIVATION_FLOOR, ATOM_FLOOR

J, I, K = 11, 6, 3


class Inference(NamedTuple):
    """How to ask an estimator, and the reference, for the same algorithm."""

    name: str
    estimator: type
    options: dict[str, Any]
    start: tuple[str, str]  # arguments of fit, activations first
    state: tuple[str, str]  # fitted attributes
    trace: str
    step: Callable
    value: Callable
    atom_mass: float  # what the atoms of a start sum to


EM = Inference(
    name="em",
    estimator=SkellamSNMF,
    options={"solver": "em"},
    start=("activations", "atoms"),
    state=("activations_", "atoms_"),
    trace="objectives_",
    step=reference.em_iteration,
    value=reference.em_objective,
    atom_mass=1.0,
)
VBEM = Inference(
    name="vbem",
    estimator=BayesianSkellamSNMF,
    options={"posterior": "mean-field"},
    start=("activation_shape", "atom_shape"),
    state=("activation_shape_", "atom_shape_"),
    trace="lower_bounds_",
    step=reference.vb_iteration,
    value=reference.vb_bound,
    atom_mass=40.0,
)


def make_data(likelihood, gaps):
    rng = np.random.default_rng(5)
    X = rng.normal(0.0, 8.0, (J, I)) * rng.uniform(0.2, 2.0, I)
    X[1, 2] = 0.0
    if likelihood == "integer":
        X = X.round()
    if gaps == "some cells":
        X[rng.random(X.shape) < 0.25] = np.nan
    elif gaps == "a row and a column":
        X[3, :] = np.nan
        X[:, 4] = np.nan
    return X


def make_prior(kind):
    """Hyperparameters by the reference's names: those of the estimators have a suffix _prior."""
    rng = np.random.default_rng(6)
    if kind == "default":
        return {"activation_shape": 1.0, "activation_rate": 1e-3, "atom_shape": 1.0}
    low, high = (1.0, 3.0) if kind == "shapes above 1" else (0.3, 0.95)
    return {
        "activation_shape": rng.uniform(low, high, (J, K)),
        "activation_rate": rng.uniform(0.01, 1.0, (J, K)),
        "atom_shape": rng.uniform(low, high, (2, K, I)),
    }


EXTRAS = {
    "plain": {},
    "weights and frozen": {"sample_weight": np.linspace(0.0, 2.5, J), "frozen": [1]},
}


class Case(NamedTuple):
    """One combination, with a start that all algorithms can take."""

    inference: Inference
    likelihood: str
    X: np.ndarray
    prior: dict[str, Any]
    extras: dict[str, Any]
    start: tuple[np.ndarray, np.ndarray]
    data: Any  # X as the kind of input that is tested

    def fit(self, from_start, **options):
        """The estimator, fitted; from the common start or from its own."""
        priors = {f"{name}_prior": value for name, value in self.prior.items()}
        if self.likelihood == "real":
            priors["dispersion"] = 0.0
        estimator = self.inference.estimator(
            K,
            likelihood=self.likelihood,
            random_state=0,
            n_jobs=1,
            **priors,
            **self.inference.options,
            **options,
        )
        fit_options = dict(self.extras)
        if from_start or "frozen" in self.extras:
            fit_options |= dict(zip(self.inference.start, self.start, strict=True))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*have no observed cell")
            return estimator.fit(self.data, **fit_options)

    def trace_of(self, model):
        return getattr(model, self.inference.trace)

    def state_of(self, model):
        return tuple(getattr(model, name) for name in self.inference.state)

    def iterate_reference(self, n_iter):
        """State after n iterations of the reference, and the n + 1 values on the way."""
        settings = {"likelihood": self.likelihood, **self.prior}
        weight = {"sample_weight": self.extras.get("sample_weight")}
        frozen = {"frozen": self.extras.get("frozen")}
        floors = self._floors()
        state = self.start
        values = [self.inference.value(self.X, *state, **settings, **weight)]
        for _ in range(n_iter):
            state = self.inference.step(self.X, *state, **settings, **weight, **frozen, **floors)
            values.append(self.inference.value(self.X, *state, **settings, **weight))
        return state, values

    def _floors(self):
        """The floors that EM has for shapes below 1: for activations, in units of the data."""
        if self.inference.name != "em" or np.min(self.prior["activation_shape"]) >= 1:
            return {}
        largest = np.nanmax(np.abs(self.X))
        unit = 1.0 if self.likelihood == "integer" else 2.0 ** np.floor(np.log2(largest))
        return {"activation_floor": ACTIVATION_FLOOR * unit, "atom_floor": ATOM_FLOOR}


PLAIN = {
    "em": EM._replace(options={"solver": "em", "acceleration": None}),
    "vbem": VBEM._replace(options=VBEM.options | {"acceleration": None}),
}
INFERENCES = PLAIN | {
    f"{name} {method}": plain._replace(options=plain.options | {"acceleration": method})
    for name, plain in PLAIN.items()
    for method in ("squarem", "parabolic")
}
INFERENCES["newton"] = EM._replace(options={"solver": "newton"})


@pytest.fixture(params=INFERENCES)
def inference(request):
    return INFERENCES[request.param]


@pytest.fixture(params=["real", "integer"])
def likelihood(request):
    return request.param


@pytest.fixture(params=["no gaps", "some cells", "a row and a column"])
def gaps(request):
    return request.param


@pytest.fixture(params=["default", "shapes above 1", "shapes below 1"])
def prior(request):
    return request.param


@pytest.fixture(params=EXTRAS)
def extras(request):
    return request.param


@pytest.fixture(params=["array"])
def kind(request, monkeypatch):
    monkeypatch.setattr(disk, "_BLOCK", 3 * 8 * I)  # blocks of three samples
    return request.param


@pytest.fixture
def case(inference, likelihood, gaps, prior, extras, kind):
    rng = np.random.default_rng(7)
    # Multiples of a power of two that sum to 1 exactly: normalisation does not change them.
    counts = rng.multinomial(2**20, rng.dirichlet(np.full(2 * I, 2.0), K))
    atoms = (counts / 2**20).reshape(K, 2, I).swapaxes(0, 1)
    start = (rng.gamma(2.0, 10.0, (J, K)), inference.atom_mass * atoms)
    X = make_data(likelihood, gaps)
    return Case(
        inference=inference,
        likelihood=likelihood,
        X=X,
        prior=make_prior(prior),
        extras=EXTRAS[extras],
        start=start,
        data=KINDS[kind](X),
    )


@pytest.mark.parametrize("kind", KINDS, indirect=True)
@pytest.mark.parametrize("inference", PLAIN, indirect=True)
def test_equals_the_reference(case):
    """max_iter=n does exactly n of the paper's iterations from the given start."""
    n_iter = 6
    with pytest.warns(ConvergenceWarning):
        model = case.fit(from_start=True, max_iter=n_iter, tol=0)
    state, values = case.iterate_reference(n_iter)
    assert model.n_iter_ == n_iter
    assert not model.converged_
    assert_allclose(case.trace_of(model), values, rtol=1e-9)
    for found, expected in zip(case.state_of(model), state, strict=True):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("extras", ["weights and frozen"], indirect=True)
@pytest.mark.parametrize("gaps", ["some cells"], indirect=True)
@pytest.mark.parametrize("kind", ["sparse", "disk"], indirect=True)
def test_other_kinds_of_data_keep_the_promises(case):
    test_fit_keeps_its_promises(case)
    test_last_value_belongs_to_the_returned_state(case)


def test_fit_keeps_its_promises(case):
    """From the start to convergence, and beyond: the last step solves for the activations."""
    model = case.fit(from_start=False, max_iter=10_000, tol=1e-3)
    assert model.converged_
    trace = case.trace_of(model)
    assert trace.shape == (model.n_iter_ + 1,)
    scale = np.max(np.abs(trace))
    assert np.min(np.diff(trace)) >= -1e-10 * scale
    assert trace[-1] > trace[0]
    for value in (trace, model.atoms_, model.activations_, *case.state_of(model)):
        assert np.isfinite(value).all()
    assert model.activations_.min() >= 0 and model.atoms_.min() >= 0
    assert_allclose(model.atoms_.sum(axis=(0, 2)), 1.0, rtol=1e-12)
    frozen = case.extras.get("frozen", [])
    assert_array_equal(case.state_of(model)[1][:, frozen], case.start[1][:, frozen])


def test_last_value_belongs_to_the_returned_state(case):
    model = case.fit(from_start=True, max_iter=10_000, tol=1e-3)
    settings = {"likelihood": case.likelihood, **case.prior}
    weight = case.extras.get("sample_weight")
    expected = case.inference.value(case.X, *case.state_of(model), sample_weight=weight, **settings)
    assert case.trace_of(model)[-1] == pytest.approx(expected, rel=1e-9)


def test_no_iteration_returns_the_start(case):
    with pytest.warns(ConvergenceWarning):
        model = case.fit(from_start=True, max_iter=0)
    assert model.n_iter_ == 0
    for found, expected in zip(case.state_of(model), case.start, strict=True):
        assert_allclose(found, expected, rtol=1e-14)
    assert_allclose(case.trace_of(model), case.iterate_reference(0)[1], rtol=1e-9)
