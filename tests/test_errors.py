"""Misuse gets one sentence that names the argument, what was found and what is accepted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from seminmf import BayesianSkellamSNMF, SkellamSNMF

J, I, K = 6, 4, 2
BOTH = [SkellamSNMF, BayesianSkellamSNMF]


def data():
    return np.random.default_rng(0).normal(0.0, 9.0, (J, I)).round()


@pytest.fixture(params=BOTH, ids=["map", "bayesian"])
def estimator(request):
    return request.param


@pytest.fixture(scope="module", params=BOTH, ids=["map", "bayesian"])
def fitted(request):
    return request.param(K, random_state=0, tol=1.0).fit(data())


def assert_refuses(match, function, *arguments, **options):
    """A ValueError of one sentence, whose text has the pattern."""
    with pytest.raises(ValueError, match=match) as caught:
        function(*arguments, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def changed(value, *, at=(2, 1)):
    X = data()
    X[at] = value
    return X


# --- Data ---


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("likelihood", ["real", "integer"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_infinities(estimator, value, likelihood, dtype):
    X = changed(value).astype(dtype)
    X[4, 3] = np.inf
    match = rf"^X must be finite, or NaN for a gap; found {value} in row 2, column 1\.$"
    assert_refuses(match, estimator(likelihood=likelihood).fit, X)


def test_infinity_far_down(estimator):
    """Named by its place in all of X, whatever blocks it was read in."""
    X = np.ones((5000, 900), dtype=np.float32)
    X[4321, 17] = np.inf
    assert_refuses("row 4321, column 17", estimator().fit, X)


def test_non_integers(estimator):
    X = changed(2.5)
    X[4, 3] = 0.1
    X[0, 0] = np.nan
    sentence = assert_refuses(
        r"^X must be of integers .*found 2\.5 in row 2, column 1\.$",
        estimator(likelihood="integer").fit,
        X,
    )
    assert "check_integer=False" in sentence


def test_non_integers_pass_if_asked(estimator):
    model = estimator(likelihood="integer", check_integer=False, random_state=0).fit(changed(2.5))
    assert np.isfinite(model.activations_).all()


@pytest.mark.parametrize("check_integer", [True, False])
def test_integers_that_floats_cannot_tell_apart(estimator, check_integer):
    model = estimator(likelihood="integer", check_integer=check_integer)
    assert_refuses(
        r"X must be within ±2\^53.*found a value of size 1e\+20", model.fit, changed(1e20)
    )


def test_complex(estimator):
    assert_refuses("X must be real; found complex128", estimator().fit, data() + 1j)
    assert_refuses("X must be real; found", estimator().fit, (data() + 1j).tolist())


def test_text(estimator):
    frame = pd.DataFrame(data(), columns=list("abcd")).astype({"b": str})
    frame["b"] = "x"
    assert_refuses(
        "X must hold numbers, with NaN for gaps; found text.*'x'", estimator().fit, frame
    )
    objects = data().astype(object)
    objects[1, 1] = "two"
    assert_refuses("X must hold numbers.*'two'", estimator().fit, objects)


def test_no_observed_cell(estimator):
    match = r"X must have at least one observed cell; found gaps \(NaN\) only"
    assert_refuses(match, estimator().fit, np.full((J, I), np.nan))


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.ones(5), "Expected 2D array, got 1D array"),
        (np.ones((2, 3, 4)), "dim 3"),
        (np.ones((0, 3)), "0 sample"),
        (np.ones((3, 0)), r"0 feature\(s\)"),
    ],
)
def test_shape_of_the_data(estimator, X, match):
    with pytest.raises(ValueError, match=match):
        estimator().fit(X)


# --- Parameters ---


@pytest.mark.parametrize("value", [0, -1, 2.0, "2", None, True])
def test_number_of_components(estimator, value):
    match = r"^n_components must be an integer of at least 1; found "
    sentence = assert_refuses(match, estimator(n_components=value).fit, data())
    assert repr(value) in sentence


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("likelihood", "gaussian"),
        ("likelihood", 1),
        ("likelihood", np.array(["real", "integer"])),
        ("init", "zeros"),
        ("init", None),
    ],
)
def test_choices(estimator, name, value):
    match = rf"^{name} must be one of '\w+'.*; found "
    assert_refuses(match, estimator(**{name: value}).fit, data())


def test_solver():
    sentence = assert_refuses("^solver must be one of ", SkellamSNMF(solver="cd").fit, data())
    assert "'em'" in sentence and "'newton'" in sentence and "found 'cd'" in sentence


@pytest.mark.parametrize("value", ["fast", True, "None"])
def test_acceleration(estimator, value):
    match = rf"^acceleration must be one of 'squarem', 'parabolic', None; found {value!r}\.$"
    assert_refuses(match, estimator(acceleration=value).fit, data())


@pytest.mark.parametrize("value", [-1e-3, np.nan, np.inf, "small", None, [1e-3], True])
def test_tolerance(estimator, value):
    match = r"^tol must be a finite number of at least 0; found "
    assert_refuses(match, estimator(tol=value).fit, data())


@pytest.mark.parametrize(("name", "least"), [("max_iter", 0), ("n_init", 1)])
@pytest.mark.parametrize("value", [-1, 1.5, "3", None, False])
def test_counts(estimator, name, least, value):
    match = rf"^{name} must be an integer of at least {least}; found "
    assert_refuses(match, estimator(**{name: value}).fit, data())


@pytest.mark.parametrize("value", [0, 1.5, "all"])
def test_n_jobs(estimator, value):
    assert_refuses("^n_jobs must be ", estimator(n_jobs=value).fit, data())


@pytest.mark.parametrize("value", ["seed", 1.5, -1])
def test_random_state(estimator, value):
    with pytest.raises(ValueError, match=r"[Ss]eed"):
        estimator(random_state=value).fit(data())


@pytest.mark.parametrize("name", ["activation_shape_prior", "atom_shape_prior"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_shapes_of_priors_are_positive(estimator, name, value):
    match = rf"^{name} must be finite and above 0; found {value}\.$"
    assert_refuses(match, estimator(**{name: value}).fit, data())


@pytest.mark.parametrize("value", [-1e-3, np.nan, np.inf])
def test_rates_are_not_negative(estimator, value):
    match = rf"^activation_rate_prior must be finite and .*; found {value}\.$"
    assert_refuses(match, estimator(activation_rate_prior=value).fit, data())


def test_one_wrong_entry_of_a_prior_is_named(estimator):
    rates = np.ones((J, K))
    rates[3, 1] = -7.0
    assert_refuses(r"found -7\.0", estimator(activation_rate_prior=rates).fit, data())
    rates[3, 1] = np.nan
    rates[0, 0] = 0.5
    assert_refuses("found nan", estimator(activation_rate_prior=rates).fit, data())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rate_of_zero():
    match = r"^activation_rate_prior must be finite and above 0; found 0\.0\.$"
    assert_refuses(match, BayesianSkellamSNMF(activation_rate_prior=0.0).fit, data())
    model = SkellamSNMF(activation_rate_prior=0.0, max_iter=30, tol=1.0).fit(data())
    assert np.isfinite(model.activations_).all()


@pytest.mark.parametrize(
    ("name", "shape", "accepted"),
    [
        ("activation_shape_prior", (K + 1,), (J, K)),
        ("activation_shape_prior", (J,), (J, K)),
        ("activation_rate_prior", (J + 1, K), (J, K)),
        ("activation_rate_prior", (1, J, K), (J, K)),
        ("atom_shape_prior", (3, K, I), (2, K, I)),
        ("atom_shape_prior", (I + 1,), (2, K, I)),
    ],
)
def test_priors_that_do_not_broadcast(estimator, name, shape, accepted):
    sentence = assert_refuses(
        f"^{name} must be a number or broadcast to ",
        estimator(K, **{name: np.ones(shape)}).fit,
        data(),
    )
    assert str(accepted) in sentence and f"found an array of shape {shape}" in sentence


@pytest.mark.parametrize(
    "name", ["activation_shape_prior", "activation_rate_prior", "atom_shape_prior"]
)
@pytest.mark.parametrize("value", ["one", None, [[1.0], [1.0, 2.0]]])
def test_priors_that_are_no_numbers(estimator, name, value):
    assert_refuses(f"^{name} must be ", estimator(**{name: value}).fit, data())


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "automatic", None, [1.0], True])
def test_dispersion(estimator, value):
    match = r"^dispersion must be 'auto' or a number of at least 0; found "
    assert_refuses(match, estimator(dispersion=value).fit, data())


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF])
@pytest.mark.parametrize("value", [0.0, 0.5, 2, 10.0])
def test_dispersion_of_integers(estimator, value):
    match = rf"^dispersion must be 'auto' or 1 for likelihood='integer'; found {value!r}\.$"
    assert_refuses(match, estimator(likelihood="integer", dispersion=value).fit, data())


# --- Arguments of fit ---


@pytest.mark.parametrize(
    ("cls", "name", "shape", "accepted"),
    [
        (SkellamSNMF, "activations", (J, K + 1), (J, K)),
        (SkellamSNMF, "activations", (K, J), (J, K)),
        (SkellamSNMF, "atoms", (2, K + 1, I), (2, K, I)),
        (SkellamSNMF, "atoms", (I, K), (2, K, I)),
        (SkellamSNMF, "atoms", (I,), (2, K, I)),
        (BayesianSkellamSNMF, "activation_shape", (J,), (J, K)),
        (BayesianSkellamSNMF, "atom_shape", (K, I), (2, K, I)),
    ],
)
def test_starts_of_the_wrong_shape(cls, name, shape, accepted):
    sentence = assert_refuses(
        f"^{name} must have the shape ", cls(K).fit, data(), **{name: np.ones(shape)}
    )
    assert str(accepted) in sentence and f"found {shape}" in sentence


@pytest.mark.parametrize(
    ("cls", "name", "shape"),
    [
        (SkellamSNMF, "activations", (J, K)),
        (SkellamSNMF, "atoms", (2, K, I)),
        (BayesianSkellamSNMF, "activation_shape", (J, K)),
        (BayesianSkellamSNMF, "atom_shape", (2, K, I)),
    ],
)
@pytest.mark.parametrize("value", [-2.0, np.inf])
def test_starts_of_the_wrong_sign(cls, name, shape, value):
    start = np.ones(shape)
    start.flat[3] = value
    match = rf"^{name} must be finite and (at least|above) 0; found {value}\.$"
    assert_refuses(match, cls(K).fit, data(), **{name: start})


@pytest.mark.parametrize(
    ("cls", "name", "shape"),
    [
        (SkellamSNMF, "activations", (J, K)),
        (BayesianSkellamSNMF, "activation_shape", (J, K)),
    ],
)
def test_activations_to_start_from_have_no_gaps(cls, name, shape):
    start = np.ones(shape)
    start[1, 1] = np.nan
    assert_refuses(f"^{name} must be finite.*found nan", cls(K).fit, data(), **{name: start})


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_signed_atoms_are_finite(value):
    signed = np.ones((K, I))
    signed[0, 2] = value
    assert_refuses("^atoms must be finite", SkellamSNMF(K).fit, data(), atoms=signed)


@pytest.mark.parametrize("cls_name", [(SkellamSNMF, "atoms"), (BayesianSkellamSNMF, "atom_shape")])
def test_a_component_is_missing_as_a_whole(cls_name):
    """NaN asks for a start; half a component of NaN asks for nothing that is clear."""
    cls, name = cls_name
    start = np.ones((2, K, I))
    start[0, 1, 2] = np.nan
    assert_refuses(f"^{name} must .*NaN", cls(K).fit, data(), **{name: start})


def test_shapes_to_start_from_are_positive():
    start = np.ones((2, K, I))
    start[0, 0, 0] = 0.0
    assert_refuses(
        r"^atom_shape must be above 0; found 0",
        BayesianSkellamSNMF(K).fit,
        data(),
        atom_shape=start,
    )
    assert_refuses(
        r"^activation_shape must be above 0; found 0",
        BayesianSkellamSNMF(K).fit,
        data(),
        activation_shape=np.zeros((J, K)),
    )


def test_atoms_of_zeros():
    atoms = np.ones((2, K, I))
    atoms[:, 1] = 0.0
    assert_refuses(
        "^atoms must not be all zero; found zeros in component 1",
        SkellamSNMF(K).fit,
        data(),
        atoms=atoms,
    )


@pytest.mark.parametrize("name", ["atoms", "activations"])
def test_starts_that_are_no_numbers(name):
    assert_refuses(f"^{name} must ", SkellamSNMF(K).fit, data(), **{name: "many"})


def starts(cls):
    name = "atoms" if cls is SkellamSNMF else "atom_shape"
    return {name: np.ones((2, K, I))}


@pytest.mark.parametrize(
    ("frozen", "found"),
    [
        ([K], rf"\[{K}\]"),
        ([-1], r"\[-1\]"),
        ([[0], [1]], r"shape \(2, 1\)"),
        ([True, False, True], r"shape \(3,\) and type bool"),
        ([0.0], "float64"),
        ("all", "<U3"),
    ],
)
def test_frozen(estimator, frozen, found):
    match = f"^frozen must .*; found .*{found}"
    assert_refuses(match, estimator(K).fit, data(), frozen=frozen, **starts(estimator))


def test_frozen_needs_atoms(estimator):
    name = next(iter(starts(estimator)))
    match = f"^frozen components must have their {name} given; found none or NaN"
    assert_refuses(match, estimator(K).fit, data(), frozen=[1])
    start = starts(estimator)
    for value in start.values():
        value[:, 1] = np.nan
    assert_refuses(match, estimator(K).fit, data(), frozen=[1], **start)
    estimator(K, tol=1.0).fit(data(), frozen=[0], **start)  # the one that is given


def test_negative_weights(estimator):
    match = r"^sample_weight must be at least 0, .*; found a smallest of -1\.0"
    assert_refuses(match, estimator(K).fit, data(), sample_weight=[-1.0, 1, 1, 1, 1, 1])


def test_weights_of_zero(estimator):
    match = r"[Ss]ample[_ ]weights? must .*(non-zero|above 0)"
    assert_refuses(match, estimator(K).fit, data(), sample_weight=np.zeros(J))


@pytest.mark.parametrize("weights", [np.ones(J - 1), np.ones((J, 2)), [np.nan] * J, ["a"] * J])
def test_weights_that_cannot_be_weights(estimator, weights):
    with pytest.raises(ValueError, match=r"[Ss]ample[_ ]weight"):
        estimator(K).fit(data(), sample_weight=weights)


# --- After the fit ---


@pytest.mark.parametrize(
    "method",
    [
        lambda model: model.transform(data()),
        lambda model: model.inverse_transform(np.ones((2, K))),
        lambda model: model.predict(data()),
        lambda model: model.impute(data()),
        lambda model: model.score(data()),
        lambda model: model.sources(data()),
        lambda model: model.predict_cells(0, 0),
        lambda model: model.save("nowhere/model"),
        lambda model: model.get_feature_names_out(),
    ],
)
def test_not_fitted(estimator, method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        method(estimator())


@pytest.mark.parametrize("method", ["sample", "interval"])
def test_posterior_not_fitted(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(BayesianSkellamSNMF(), method)()


@pytest.mark.parametrize("method", ["transform", "predict", "impute", "score", "sources"])
def test_other_features_than_fitted(fitted, method):
    function = getattr(fitted, method)
    assert_refuses(
        f"{I + 1} features, but .* expecting {I} features", function, np.ones((3, I + 1))
    )
    assert_refuses(r"X must be finite.*row 2, column 1", function, changed(np.inf))
    assert_refuses("X must be real", function, data() + 1j)


def test_other_names_than_fitted(estimator):
    frame = pd.DataFrame(data(), columns=list("abcd"))
    model = estimator(K, tol=1.0).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[list("dcba")])


def test_non_integers_after_an_integer_fit(estimator):
    model = estimator(K, likelihood="integer", tol=1.0).fit(data())
    assert_refuses(r"found 2\.5 in row 2, column 1", model.transform, changed(2.5))


@pytest.mark.parametrize("activations", [np.ones((3, K + 1)), np.ones(K), "none"])
def test_inverse_transform(fitted, activations):
    with pytest.raises(ValueError, match=r"X must|2D array"):
        fitted.inverse_transform(activations)


@pytest.mark.parametrize(
    ("rows", "columns", "match"),
    [
        (J, 0, rf"^rows must be within 0 to {J - 1}; found {J}"),
        ([0, 99], 0, rf"^rows must be within 0 to {J - 1}; found 0 to 99"),
        (0, I, rf"^columns must be within 0 to {I - 1}; found {I}"),
        (-J - 1, 0, "^rows must be within"),
        (0.5, 0, "^rows must "),
        (0, "a", "^columns must "),
        ([0, 1], [0, 1, 2], "^rows and columns must "),
    ],
)
def test_cells(fitted, rows, columns, match):
    assert_refuses(match, fitted.predict_cells, rows, columns)


@pytest.mark.parametrize("name", ["activation_shape_prior", "activation_rate_prior"])
def test_prior_for_each_sample(estimator, name):
    model = estimator(K, tol=1.0, **{name: np.linspace(0.5, 2.0, J)[:, None]}).fit(data())
    match = f"priors that hold for any sample; found .* each of the {J} samples"
    for method in (model.transform, model.predict, model.impute, model.score, model.sources):
        assert_refuses(match, method, data()[:2])
    # What belongs to the training data is there.
    assert model.fit_transform(data()).shape == (J, K)
    assert model.fit_predict(data()).shape == (J,)
    assert np.isfinite(model.predict_cells(0, 0))


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 90, np.nan, "high", None])
def test_level(level):
    model = BayesianSkellamSNMF(K, tol=1.0).fit(data())
    match = r"^level must be (a number )?between 0 and 1; found "
    assert_refuses(match, model.interval, level)
    assert_refuses(match, model.impute, data(), return_interval=True, level=level)


@pytest.mark.parametrize("n", [0, -1, 1.5, "2"])
def test_draws(n):
    model = BayesianSkellamSNMF(K, tol=1.0).fit(data())
    assert_refuses("^n must be an integer of at least 1; found ", model.sample, n)
    match = "^n_draws must be an integer of at least 1; found "
    assert_refuses(match, model.interval, n_draws=n)
    assert_refuses(match, model.impute, data(), return_interval=True, n_draws=n)


# --- A refusal changes nothing ---

REFUSED = [
    ({}, {"X": np.full((J, I + 1), np.inf)}),
    ({}, {"X": np.full((J, I + 1), np.nan)}),
    ({}, {"X": np.ones((J, I + 1)), "sample_weight": -np.ones(J)}),
    ({}, {"X": np.ones((J, I + 1)), "frozen": [0]}),
    ({"activation_rate_prior": -1.0}, {"X": np.ones((J, I + 1))}),
    ({"atom_shape_prior": np.ones(I)}, {"X": np.ones((J, I + 1))}),
    ({"n_components": 0}, {"X": np.ones((J, I + 1))}),
    ({"init": "zeros"}, {"X": np.ones((J, I + 1))}),
    ({"random_state": "seed"}, {"X": np.ones((J, I + 1))}),
    ({"n_jobs": 0}, {"X": np.ones((J, I + 1))}),
]


@pytest.mark.parametrize(("parameters", "arguments"), REFUSED)
def test_refusal_changes_nothing(estimator, parameters, arguments):
    """Neither of a fitted estimator nor of a new one; names of features included."""
    frame = pd.DataFrame(data(), columns=list("abcd"))
    model = estimator(tol=1.0).fit(frame).set_params(**parameters)
    before = dict(vars(model))
    with pytest.raises(ValueError):
        model.fit(**arguments)
    assert vars(model).keys() == before.keys()
    for name, value in before.items():
        assert vars(model)[name] is value, name

    new = estimator(**parameters)
    parameters_alone = set(vars(new))
    with pytest.raises(ValueError):
        new.fit(**arguments)
    assert set(vars(new)) == parameters_alone


@pytest.mark.parametrize(("parameters", "arguments"), REFUSED)
def test_refusal_comes_before_any_work(estimator, parameters, arguments, monkeypatch):
    def work(*arguments, **options):
        raise AssertionError("a pass was started")

    monkeypatch.setattr("seminmf._algorithms.problem.estep", work)
    with pytest.raises(ValueError):
        estimator(**parameters).fit(**arguments)
