"""What every tensor model must keep: both likelihoods, EM and VBEM, with gaps and without."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from tensors import CASES

from seminmf import BayesianSkellamSNMF, BayesianSkellamSNTF, SkellamSNMF, SkellamSNTF
from seminmf._model.language import read
from seminmf._model.network import derive

ESTIMATORS = {"EM": SkellamSNTF, "VBEM": BayesianSkellamSNTF}
TRACES = {"EM": "objectives_", "VBEM": "lower_bounds_"}
# Without noise, so that a fit is of one problem from the start to the end.
LIKELIHOODS = {
    "real": {"dispersion": 0.0},
    "integer": {"likelihood": "integer"},
    "dispersed": {"dispersion": 2.0, "noise": None},
}


def fitted(name, inference, likelihood, gaps=True, X=None, **options):
    case = CASES[name]
    options = {"max_iter": 20, "tol": 0, "random_state": 0, "n_jobs": 1} | options
    model = ESTIMATORS[inference](
        case.model, case.n_components, signed=case.signed, **LIKELIHOODS[likelihood], **options
    )
    X = case.data(likelihood, gaps) if X is None else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, factors=case.factors, frozen=case.frozen)


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("inference", ESTIMATORS)
@pytest.mark.parametrize("name", CASES)
def test_the_objective_never_falls_and_factors_sum_to_1(name, inference, likelihood, gaps):
    ways = [("em", None), ("em", "squarem")]
    ways += [("newton", "squarem")] if inference == "EM" and gaps else []
    for solver, acceleration in ways:
        model = fitted(name, inference, likelihood, gaps, solver=solver, acceleration=acceleration)
        trace = getattr(model, TRACES[inference])
        assert np.isfinite(trace).all()
        assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])
    _assert_sums(model, CASES[name])


def _assert_sums(model, case):
    """Factors that are no units sum to 1 over their new axes and signs, but for those frozen."""
    frozen = frozenset(case.frozen or ())
    network = derive(read(case.model), frozen=frozen)
    parts = model.parts_
    near_frozen = {link.receiver for link in network.links if link.factor in frozen}
    for name, role in network.roles.items():
        if not role.is_free and name not in frozen | near_frozen:
            sums = parts[name].sum(axis=(0, *(n + 1 for n in role.new)))
            assert_allclose(sums, 1, atol=1e-9)


@pytest.mark.parametrize("inference", ESTIMATORS)
@pytest.mark.parametrize("name", CASES)
def test_sums_by_the_pass_are_those_of_plain_einsum(name, inference):
    model = fitted(name, inference, "dispersed")
    expected = CASES[name].rates(model.parts_, model.table_weights_)
    state = model._fitted
    parts = state.parts(state.means(inference == "VBEM"))
    for one in state.model.plan.observations:
        found = state.rates(parts, one)
        assert_allclose(found, expected[one.name], rtol=1e-10, atol=1e-10 * found.max())


@pytest.mark.parametrize("inference", ESTIMATORS)
@pytest.mark.parametrize("name", CASES)
def test_transform_of_the_training_data_gives_the_activations(name, inference):
    if name == "tied":
        pytest.skip("its factor belongs to samples and to features")
    case = CASES[name]
    X = case.data("real", True)
    # Its row problems are convex: they have one solution.
    model = fitted(name, inference, "real", X=X, tol=1e-3, max_iter=3000)
    found = model.transform(X)
    own = _flat(model)
    assert_allclose(found, own, rtol=1e-2, atol=1e-2 * own.max())
    values = model.inverse_transform(found)
    filled = model.impute(X)
    for name, one in filled.items() if isinstance(filled, dict) else [("X", filled)]:
        observed = X[name] if isinstance(X, dict) else X
        fits = values[name] if isinstance(values, dict) else values
        assert_allclose(one, np.where(np.isnan(observed), fits, observed), atol=1e-8)


def _flat(model):
    """The samples' factors of the fit as `transform` returns them."""
    return model._flat(model._fitted)


@pytest.mark.parametrize("inference", ESTIMATORS)
@pytest.mark.parametrize("name", CASES)
def test_a_power_of_two_of_X_changes_the_unit_alone(name, inference):
    case = CASES[name]
    X = case.data("real", True)
    larger = {k: 1024 * v for k, v in X.items()} if isinstance(X, dict) else 1024 * X
    options = {"dispersion": "auto", "noise": "same", "max_iter": 5}
    models = []
    for data in (X, larger):
        model = ESTIMATORS[inference](
            case.model, case.n_components, signed=case.signed, random_state=0, n_jobs=1, n_init=1
        ).set_params(**options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models.append(model.fit(data, factors=case.factors, frozen=case.frozen))
    unit = models[0]._fitted.model.network.units
    for name, parts in models[0].parts_.items():
        scale = 1024 if name in unit else 1
        assert_allclose(models[1].parts_[name], scale * parts, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("inference", ESTIMATORS)
@pytest.mark.parametrize("name", ["CP", "Tucker", "jitter", "sum", "frozen"])
def test_permuted_samples_give_permuted_rows(name, inference):
    case = CASES[name]
    X = case.data("integer", True)
    first = fitted(name, inference, "integer", X=X, tol=1e-4, max_iter=3000)
    order = np.random.default_rng(0).permutation(len(X))
    assert_allclose(first.transform(X[order]), first.transform(X)[order], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("acceleration", [None, "squarem"])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_matrix_is_the_matrix_model(likelihood, acceleration, weighted):
    random = np.random.default_rng(0)
    X = random.normal(0, 8, (11, 6)).round()
    X[random.random(X.shape) < 0.2] = np.nan
    weights = np.linspace(0, 2.5, 11) if weighted else None
    atoms = random.uniform(size=(2, 3, 6))
    atoms /= atoms.sum(axis=(0, 2), keepdims=True)
    activations = random.uniform(0.5, 10, (11, 3))
    options = {"acceleration": acceleration, "max_iter": 20, "tol": 0, "n_jobs": 1, "noise": None}
    options |= LIKELIHOODS[likelihood]
    tensor = SkellamSNTF("jk,ki->ji", 3, signed="ki", solver="em", **options)
    matrix = SkellamSNMF(3, solver="em", activation_rate_prior=1e-3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tensor.fit(X, factors={"jk": activations, "ki": atoms}, sample_weight=weights)
        matrix.fit(X, atoms=atoms, activations=activations, sample_weight=weights)
    assert_allclose(tensor.objectives_, matrix.objectives_, rtol=1e-9)
    assert_allclose(tensor.parts_["ki"], matrix.atoms_, rtol=1e-6, atol=1e-9)
    assert_allclose(tensor.activations_, matrix.activations_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_matrix_has_the_posterior_of_the_matrix_model(likelihood, monkeypatch):
    random = np.random.default_rng(1)
    X = random.normal(0, 8, (11, 6)).round()
    X[random.random(X.shape) < 0.2] = np.nan
    shapes = random.uniform(2, 9, (11, 3)), random.uniform(2, 9, (2, 3, 6))
    options = {"acceleration": None, "max_iter": 20, "tol": 0, "n_jobs": 1, "noise": None}
    options |= LIKELIHOODS[likelihood]
    monkeypatch.setattr(BayesianSkellamSNTF, "_first", lambda self, problem, arrays: list(shapes))
    tensor = BayesianSkellamSNTF("jk,ki->ji", 3, signed="ki", **options)
    matrix = BayesianSkellamSNMF(3, posterior="mean-field", activation_rate_prior=1e-3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tensor.fit(X)
        matrix.fit(X, activation_shape=shapes[0], atom_shape=shapes[1])
    assert_allclose(tensor.lower_bounds_, matrix.lower_bounds_, rtol=1e-11)
    assert_allclose(tensor.shapes_["ki"], matrix.atom_shape_, rtol=1e-8)
    assert_allclose(tensor.activations_, matrix.activations_, rtol=1e-8)
