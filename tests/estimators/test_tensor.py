"""The estimators for tensors: what users give, what they get, and what is refused."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tensors import CASES

from seminmf import BayesianSkellamSNTF, SkellamSNTF, load, plot
from seminmf._algorithms import tensor as algorithms
from seminmf._algorithms import tensor_em
from seminmf._data import tensors
from seminmf._estimators import tensor_data
from seminmf._model import split

KINDS = [SkellamSNTF, BayesianSkellamSNTF]
CP = "nr,jr,kr->njk"


def truth(random, sizes=(40, 12, 10), n_components=3):
    """Factors of a CP model, the second with signs."""
    return [
        random.normal(size=(size, n_components))
        if n == 1
        else random.gamma(0.7, size=(size, n_components))
        for n, size in enumerate(sizes)
    ]


def noisy(factors, ratio, random):
    signal = np.einsum("nr,jr,kr->njk", *factors)
    return signal + signal.std() / ratio * random.normal(size=signal.shape)


def cosines(first, second):
    """Of columns, after the best matching by all factors together."""
    own = [
        np.abs((a / np.linalg.norm(a, axis=0)).T @ (b / np.linalg.norm(b, axis=0)))
        for a, b in zip(first, second, strict=True)
    ]
    rows, columns = linear_sum_assignment(-np.prod(own, axis=0))
    return np.array([one[rows, columns] for one in own])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_truth_is_found_again(kind, gaps):
    random = np.random.default_rng(0)
    factors = truth(random)
    X = noisy(factors, 3, random)
    X[random.random(X.shape) < gaps] = np.nan
    model = kind(CP, 3, signed="jr", random_state=0, n_jobs=1).fit(X)
    assert cosines(factors, list(model.factors_.values())).min() > 0.98
    noise = np.einsum("nr,jr,kr->njk", *factors).std() / 3
    assert_allclose(model.noise_.mean(), noise, rtol=0.1)


def test_noise_that_differs_by_a_letter_is_found():
    random = np.random.default_rng(1)
    factors = truth(random, (60, 8, 10))
    levels = np.linspace(0.5, 3, 8)
    X = np.einsum("nr,jr,kr->njk", *factors)
    X = X + levels[:, None] * random.normal(size=X.shape)
    model = SkellamSNTF(CP, 3, signed="jr", random_state=0, n_jobs=1).fit(X)
    assert_allclose(model.noise_, levels, rtol=0.15)
    same = SkellamSNTF(CP, 3, signed="jr", noise="same", random_state=0, n_jobs=1).fit(X)
    assert same.noise_.shape == (1,)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_frozen_stays(kind):
    random = np.random.default_rng(2)
    amounts, known = random.gamma(1, size=(30, 3)), random.gamma(0.5, size=(3, 12))
    X = amounts @ known + 0.05 * random.normal(size=(30, 12))
    first = np.where(np.arange(3)[:, None] < 2, known, np.nan)
    model = kind("nk,kt->nt", 3, signed=(), random_state=0, n_jobs=1)
    model.fit(X, factors={"kt": first}, frozen={"kt": [0, 1]})
    assert_allclose(model.factors_["kt"][:2], known[:2], rtol=1e-12)
    fitted = model.inverse_transform(model.transform(X))
    assert np.std(X - fitted) < 0.1
    # In the unit of what is known.
    assert_allclose(model.factors_["nk"][:, :2].sum(axis=0), amounts[:, :2].sum(axis=0), rtol=0.2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 0.5])
def test_single_entries_may_be_known(kind, value):
    random = np.random.default_rng(3)
    mask = random.random((2, 9)) < 0.3
    components = np.where(mask, value, random.normal(size=(2, 9)))
    X = random.gamma(1, size=(30, 2)) @ components + 0.1 * random.normal(size=(30, 9))
    model = kind("nr,rt->nt", 2, signed="rt", random_state=0, n_jobs=1)
    model.fit(X, factors={"rt": np.where(mask, value, np.nan)}, frozen={"rt": mask})
    assert_allclose(model.factors_["rt"][mask], value, atol=1e-12)
    assert model.r2_ > 0.95


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_files_answer_as_what_was_saved(kind, name, tmp_path):
    case = CASES[name]
    X = case.data("integer", True)
    model = kind(
        case.model,
        case.n_components,
        signed=case.signed,
        likelihood="integer",
        random_state=0,
        tol=1e-2,
        n_jobs=1,
    ).fit(X, factors=case.factors, frozen=case.frozen)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for factor, parts in model.parts_.items():
        assert_array_equal(again.parts_[factor], parts)
    assert again.get_params() == model.get_params()
    if name != "tied":
        assert_array_equal(again.transform(X), model.transform(X))
        assert again.score(X) == model.score(X)


def test_a_file_that_was_changed_is_refused(tmp_path):
    X = CASES["CP"].data("integer", False)
    model = SkellamSNTF(CP, 2, signed="jr", likelihood="integer", tol=1e-2).fit(X)
    model.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes().replace(b"nr,jr,kr->njk", b"nr,jq,kr->njk")
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ValueError, match="is not a seminmf model"):
        load(tmp_path / "model")


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_goes_on_from_its_checkpoint(kind, tmp_path):
    X = CASES["CP"].data("real", True)
    model = kind(CP, {"r": 2}, signed=("jr",), random_state=0, n_jobs=1, n_init=2, max_iter=30)
    plain = clone(model).fit(X)
    path = tmp_path / "checkpoint"
    noted = clone(model).fit(X, checkpoint=path, checkpoint_every=0)
    again = clone(model).fit(X, checkpoint=path)
    for name, parts in plain.parts_.items():
        assert_array_equal(noted.parts_[name], parts)
        assert_array_equal(again.parts_[name], parts)
    with pytest.raises(ValueError, match="it was made with other data"):
        clone(model).fit(X + 1, checkpoint=path)


@pytest.mark.parametrize("noise", ["auto", None])
def test_ctrl_c_keeps_the_best_state_so_far(noise, monkeypatch):
    X = CASES["CP"].data("real", True)
    step, calls = tensor_em.step, []

    def interrupted(problem, state):
        calls.append(state)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return step(problem, state)

    monkeypatch.setattr(tensor_em, "step", interrupted)
    model = SkellamSNTF(CP, 2, signed="jr", dispersion=2.0, noise=noise, random_state=0)
    with pytest.warns(match="Interrupted"):
        model.fit(X)
    assert model.stop_reason_ == "interrupted"
    assert np.isfinite(model.factors_["jr"]).all()


def test_labels_come_out_where_they_go_in():
    xarray = pytest.importorskip("xarray")
    random = np.random.default_rng(4)
    X = xarray.DataArray(
        random.normal(size=(8, 3, 4)),
        dims=("trial", "channel", "time"),
        coords={"channel": ["a", "b", "c"], "time": np.arange(4) / 10},
    )
    X[0, 0, 0] = np.nan
    model = SkellamSNTF("nr,cr,tr->nct", 2, signed="cr", tol=1e-2, random_state=0).fit(X)
    channels = model.factors_["cr"]
    assert isinstance(channels, pd.DataFrame)
    assert list(channels.index) == ["a", "b", "c"]
    assert channels.index.name == "channel"
    filled = model.impute(X)
    assert isinstance(filled, xarray.DataArray)
    assert not filled.isnull().any()
    table = pd.DataFrame(random.normal(size=(8, 3)), columns=["a", "b", "c"])
    model = SkellamSNTF("nr,cr->nc", 2, signed="cr", tol=1e-2, random_state=0).fit(table)
    assert list(model.factors_["cr"].index) == ["a", "b", "c"]
    assert isinstance(model.impute(table), pd.DataFrame)


@pytest.mark.parametrize("kind", KINDS)
def test_one_table_is_predicted_from_another(kind):
    random = np.random.default_rng(5)
    a, b, c = truth(random, (80, 8, 6))
    d = random.normal(size=(5, 3))
    X = np.einsum("nr,jr,kr->njk", a, b, c)
    X += 0.1 * X.std() * random.normal(size=X.shape)
    Y = 0.01 * a @ d.T
    Y += 0.1 * Y.std() * random.normal(size=Y.shape)
    model = kind({"x": CP, "y": "nr,mr->nm"}, 3, signed=("jr", "mr"), random_state=0, n_jobs=1)
    model.fit({"x": X[:60], "y": Y[:60]})
    found = model.impute({"x": X[60:]})
    assert 1 - ((found["y"] - Y[60:]) ** 2).sum() / (Y[60:] ** 2).sum() > 0.9
    assert model.table_weights_["nr"].shape == (2, 3)


def test_float32_stays():
    random = np.random.default_rng(6)
    X = noisy(truth(random), 3, random)
    model = SkellamSNTF(CP, 3, signed="jr", random_state=0, n_init=1, n_jobs=1)
    single = clone(model).fit(X.astype(np.float32))
    assert {parts.dtype for parts in single.parts_.values()} == {np.dtype(np.float32)}
    double = model.fit(X)
    assert_allclose(single.factors_["jr"], double.factors_["jr"], atol=1e-2)


def test_results_do_not_depend_on_the_number_of_threads():
    random = np.random.default_rng(7)
    X = noisy(truth(random, (150, 40, 60)), 3, random)
    model = SkellamSNTF(CP, 3, signed="jr", random_state=0, n_init=1, max_iter=5, tol=0)
    with pytest.warns(match="No convergence"):
        one, two = (clone(model).set_params(n_jobs=n).fit(X) for n in (1, 2))
    assert_array_equal(one.parts_["jr"], two.parts_["jr"])


def test_a_weight_of_2_is_a_repeated_sample():
    X = CASES["CP"].data("integer", True)
    weights = np.arange(len(X)) % 3
    model = SkellamSNTF(CP, 2, signed="jr", likelihood="integer", tol=0, max_iter=15, n_jobs=1)
    random = np.random.default_rng(8)
    start = {"nr": random.uniform(1, 2, (8, 2)), "jr": random.normal(size=(5, 2))}
    start["kr"] = random.uniform(1, 2, (4, 2))
    order = np.repeat(np.arange(len(X)), weights)
    with pytest.warns(match="No convergence"):
        first = clone(model).fit(X, factors=start, sample_weight=weights)
        again = clone(model).fit(X[order], factors=start | {"nr": start["nr"][order]})
    assert_allclose(first.factors_["jr"], again.factors_["jr"], rtol=1e-6)


def test_sources_sum_to_the_data():
    X = CASES["CP"].data("integer", True)
    model = SkellamSNTF(CP, 2, signed="jr", likelihood="integer", tol=1e-3, random_state=0).fit(X)
    assert_allclose(model.sources(X).sum(axis=-1), model.impute(X), atol=1e-8)
    with pytest.raises(ValueError, match="letter must be a latent letter"):
        model.sources(X, "k")


def test_draws_and_intervals_are_around_the_means():
    X = CASES["Tucker"].data("integer", True)
    case = CASES["Tucker"]
    model = BayesianSkellamSNTF(
        case.model, case.n_components, signed="jb", likelihood="integer", random_state=0
    ).fit(X)
    draws, intervals = model.sample(400, random_state=0), model.interval(0.9)
    for name, values in model.factors_.items():
        spread = draws[name].std(axis=0) / 20 + 1e-12
        assert np.all(np.abs(draws[name].mean(axis=0) - values) < 6 * spread)
        inside = (intervals[name].lower <= draws[name]) & (draws[name] <= intervals[name].upper)
        assert 0.85 < inside.mean() < 0.95


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"signed": None}, "signed must name the factors that have signs, of 'nr', 'jr', 'kr'"),
        ({"signed": "xr"}, "signed must name factors of the model ('nr', 'jr', 'kr'); found 'xr'"),
        (
            {"signed": (), "noise": None, "dispersion": 1.0},
            "signed must name a factor of each tensor below 0",
        ),
        ({"noise": "n"}, "noise must be one of 'auto', 'same', None, 'j', 'k'; found 'n'"),
        ({"noise": None}, "noise must be 'auto', 'same' or a letter where dispersion is 'auto'"),
        ({"noise": "j", "dispersion": 0.0}, "noise must be 'auto' or None for likelihood='real'"),
        ({"dispersion": -1.0}, "dispersion must be 'auto' or a number of at least 0; found -1.0"),
        ({"likelihood": "count"}, "likelihood must be one of 'real', 'integer'; found 'count'"),
        ({"likelihood": {"a": "real"}}, "likelihood must have names of tensors ('X'); found 'a'"),
        ({"acceleration": "x"}, "acceleration must be one of 'squarem', 'parabolic', None"),
        ({"n_init": 0}, "n_init must be an integer of at least 1; found 0"),
        ({"activation_rate_prior": {"x": 1}}, "activation_rate_prior must have names of factors"),
        ({"atom_shape_prior": 0.0}, "atom_shape_prior must be finite and above 0; found 0.0"),
    ],
)
def test_wrong_parameters_are_told(options, sentence):
    X = CASES["CP"].data("real", False)
    model = SkellamSNTF(CP, 2, signed="jr").set_params(**options)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        model.fit(X)
    assert not hasattr(model, "objective_")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"factors": 3}, "factors must be None or a dict by the names of factors; found 3"),
        ({"factors": {"x": 1}}, "factors must have names of factors ('nr', 'jr', 'kr'); found 'x'"),
        ({"factors": {"nr": np.ones(3)}}, "factors['nr'] must have the shape (8, 2); found (3,)"),
        ({"factors": {"nr": -np.ones((8, 2))}}, "at least 0, as it is not signed; found -1.0"),
        ({"frozen": {"nr": True}}, "frozen must name factors that `factors` has values for"),
        (
            {"factors": {"kr": np.full((4, 2), np.nan)}, "frozen": {"kr": True}},
            "factors['kr'] must have numbers where `frozen` says that they stay; found NaN",
        ),
        (
            {"factors": {"kr": np.ones((4, 2))}, "frozen": {"kr": [5]}},
            "frozen['kr'] must have indices from 0 to 1; found [5]",
        ),
        (
            {"factors": {"kr": np.ones((4, 2))}, "frozen": {"kr": "all"}},
            "frozen['kr'] must be True, a boolean array of the shape (4, 2) or indices",
        ),
        ({"sample_weight": np.ones(3)}, "sample_weight must be 8 numbers of at least 0"),
        ({"sample_weight": np.zeros(8)}, "sample_weight must be above 0 for some sample"),
    ],
)
def test_wrong_arguments_are_told(arguments, sentence):
    X = CASES["CP"].data("real", False)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        SkellamSNTF(CP, 2, signed="jr").fit(X, **arguments)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.full((4, 3, 2), np.nan), "X must have at least one observed cell"),
        (np.array([[[1.0, np.inf]]]), "X must be finite, or NaN for a gap; found inf at index"),
        (np.array([[["a"]]]), "X must hold real numbers, with NaN for gaps"),
        (np.ones((2, 2)), "X must have an axis for each letter of 'njk'; found the shape (2, 2)"),
        (np.ones((2, 0, 2)), "X must have axes of length 1 or more; found shape (2, 0, 2)"),
    ],
)
def test_wrong_data_are_told(X, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        SkellamSNTF(CP, 2, signed="jr").fit(X)


# So few iterations that rounding does not grow.
FEW = {"tol": 0, "max_iter": 5}


def _same_fits(first, second, rtol=1e-6):
    assert_allclose(getattr(first, first._trace[0]), getattr(second, first._trace[0]), rtol=rtol)
    for name, factor in first.factors_.items():
        assert_allclose(second.factors_[name], factor, rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_stored_cells_are_an_array_with_gaps(kind):
    X = CASES["CP"].data("integer", False)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = np.nan
    stored = sparse.coo_array((X[~np.isnan(X)], np.nonzero(~np.isnan(X))), shape=X.shape)
    options = {"signed": "jr", "solver": "em", "dispersion": 0.0, "random_state": 0, **FEW}
    dense, few = (kind(CP, 2, **options).fit(array) for array in (X, stored))
    _same_fits(dense, few)
    assert_allclose(few.transform(stored), dense.transform(X), rtol=1e-4, atol=1e-6)
    assert_allclose(few.impute(stored), dense.impute(X), rtol=1e-3, atol=1e-4)
    assert few.score(stored) == pytest.approx(dense.score(X), rel=1e-5)
    noisy_fit = kind(CP, 2, signed="jr", random_state=0, n_init=1, max_iter=20).fit(stored)
    assert noisy_fit.solver_ == "em"
    assert np.isfinite(noisy_fit.noise_).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_stored_cells_of_a_convolution():
    X = CASES["convolutive"].data("real", True)
    stored = sparse.coo_array((X[~np.isnan(X)], np.nonzero(~np.isnan(X))), shape=X.shape)
    case, options = (
        CASES["convolutive"],
        {"solver": "em", "dispersion": 0.0, "random_state": 0, **FEW},
    )
    dense, few = (
        SkellamSNTF(case.model, case.n_components, signed=case.signed, **options).fit(x)
        for x in (X, stored)
    )
    _same_fits(dense, few)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["memmap", "h5py", "zarr", "dask"])
def test_arrays_on_disk_are_read_in_slices(kind, tmp_path, monkeypatch):
    X = CASES["CP"].data("real", True)
    if kind == "memmap":
        np.save(tmp_path / "X.npy", X)
        on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    elif kind == "h5py":
        file = pytest.importorskip("h5py").File(tmp_path / "X.h5", "w")
        on_disk = file.create_dataset("X", data=X, chunks=(2, 5, 4))
    elif kind == "zarr":
        on_disk = pytest.importorskip("zarr").array(X, chunks=(2, 5, 4))
    else:
        on_disk = pytest.importorskip("dask.array").from_array(X, chunks=(3, -1, -1))
    monkeypatch.setattr(split, "MOST_COPIED", 1)
    options = {"signed": "jr", "solver": "em", "dispersion": 0.0, "random_state": 0, **FEW}
    memory = SkellamSNTF(CP, 2, **options).fit(X)
    _same_fits(memory, SkellamSNTF(CP, 2, **options).fit(on_disk))
    monkeypatch.setattr(tensor_data, "LARGE", 1)
    for module, name in ((tensors, "_BLOCK"), (algorithms, "_READ")):
        monkeypatch.setattr(module, name, 50)
    sliced = SkellamSNTF(CP, 2, **options).fit(on_disk)
    _same_fits(memory, sliced)
    assert_allclose(sliced.transform(on_disk), memory.transform(X), rtol=1e-4, atol=1e-6)


def test_a_wrong_number_on_disk_is_told_with_its_place(monkeypatch):
    monkeypatch.setattr(tensor_data, "LARGE", 1)
    monkeypatch.setattr(tensors, "_BLOCK", 8)
    X = np.zeros((6, 2, 2))
    X[4, 1, 0] = np.inf
    X = pytest.importorskip("dask.array").from_array(X)
    with pytest.raises(ValueError, match=re.escape("found inf at index (4, 1, 0)")):
        SkellamSNTF(CP, 2, signed="jr").fit(X)


def test_factors_are_drawn_by_name():
    X = CASES["CP"].data("integer", False)
    model = SkellamSNTF(CP, 2, signed="jr", likelihood="integer", tol=1e-2).fit(X)
    assert [ax.get_title() for ax in plot.factors(model, ["kr", "jr"])] == ["kr", "jr"]
    with pytest.raises(ValueError, match="names must be names of factors"):
        plot.factors(model, ["xr"])
    with pytest.raises(ValueError, match="model must be a SkellamSNTF or BayesianSkellamSNTF"):
        plot.factors(3)


def test_what_integers_are_not_is_told_with_its_place():
    X = np.zeros((3, 2, 2))
    X[1, 0, 1] = 0.5
    with pytest.raises(ValueError, match=re.escape("found 0.5 at index (1, 0, 1)")):
        SkellamSNTF(CP, 2, signed="jr", likelihood="integer").fit(X)


def test_tensors_of_a_dict_are_told():
    model = SkellamSNTF({"a": "nr,jr->nj", "b": "nr,mr->nm"}, 2, signed="jr")
    with pytest.raises(ValueError, match="X must be a dict with the tensors 'a' and 'b'"):
        model.fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="X must have the tensors 'a' and 'b'; found 'a'"):
        model.fit({"a": np.ones((3, 2))})


def test_other_sizes_than_those_of_the_fit_are_told():
    X = CASES["CP"].data("integer", False)
    model = SkellamSNTF(CP, 2, signed="jr", likelihood="integer", tol=1e-2).fit(X)
    with pytest.raises(ValueError, match="X must have 5 values of letter 'j', as in the fit"):
        model.transform(X[:, :3])
    assert model.transform(X[:3]).shape == (3, 2)


def test_transform_needs_factors_of_the_samples():
    case = CASES["tied"]
    X = case.data("integer", False)
    model = SkellamSNTF(case.model, 2, signed="r", likelihood="integer", tol=1e-2).fit(X)
    with pytest.raises(ValueError, match="transform needs factors that belong to the samples"):
        model.transform(X)


def _with_intercept(random):
    activations, maps = random.gamma(0.7, size=(60, 2)), random.normal(size=(12, 2))
    courses = random.gamma(1, size=(8, 2))
    X = np.einsum("nr,jr,kr->njk", activations, maps, courses) + 5
    return X + 0.3 * random.normal(size=X.shape)


def test_columns_of_ones_that_stay_are_an_intercept():
    X = _with_intercept(np.random.default_rng(0))
    ones = {}
    for name, size in (("nr", 60), ("kr", 8)):
        ones[name] = np.full((size, 3), np.nan)
        ones[name][:, 2] = 1
    model = SkellamSNTF("nr,jr,kr->njk", 3, signed="jr", random_state=0, n_init=2)
    model.fit(X, factors=ones, frozen={"nr": [2], "kr": [2]})
    assert_allclose(model.factors_["jr"][:, 2], 5, atol=0.25)
    assert_allclose(model.factors_["nr"][:, 2], 1)
    assert_allclose(model.noise_, 0.3, rtol=0.15)


def test_a_frozen_term_of_ones_is_an_intercept():
    X = _with_intercept(np.random.default_rng(1))
    model = SkellamSNTF("nr,jr,kr + n,j,k -> njk", 2, signed="jr", random_state=0, n_init=2)
    model.fit(X, factors={"n": np.ones(60), "k": np.ones(8)}, frozen={"n": True, "k": True})
    assert_allclose(model.factors_["j"], 5, atol=0.25)
    assert_allclose(model.noise_, 0.3, rtol=0.15)


def test_newton_goes_further_than_em_and_says_what_it_was():
    random = np.random.default_rng(0)
    X = np.einsum("nr,jr,kr->njk", *(random.gamma(1, size=(size, 3)) for size in (20, 9, 8)))
    X += random.normal(size=X.shape)
    options = {"dispersion": 0.0, "tol": 0, "max_iter": 40, "random_state": 0}
    fits = {}
    for solver in ("newton", "em"):
        model = SkellamSNTF("nr,jr,kr->njk", 3, signed="jr", solver=solver, **options)
        with pytest.warns(ConvergenceWarning):
            fits[solver] = model.fit(X)
        assert model.solver_ == solver
    assert fits["newton"].objective_ > fits["em"].objective_
    weighted = SkellamSNTF("nr,jr,kr->njk", 3, signed="jr", **options)
    with pytest.warns(ConvergenceWarning):
        assert weighted.fit(X, sample_weight=np.arange(1, 21)).solver_ == "em"


def test_several_starts_say_how_stable_components_are():
    random = np.random.default_rng(0)
    X = np.einsum("nr,jr,kr->njk", *(random.gamma(0.5, size=(size, 2)) for size in (20, 9, 8)))
    X += 0.01 * random.normal(size=X.shape)
    model = SkellamSNTF("nr,jr,kr->njk", 2, signed="jr", n_init=3, random_state=0).fit(X)
    assert (model.component_stability_["r"] > 0.99).all()
    single = SkellamSNTF("nr,jr,kr->njk", 2, signed="jr", n_init=1, random_state=0).fit(X)
    assert np.isnan(single.component_stability_["r"]).all()


@pytest.mark.parametrize(
    "options",
    [
        {"likelihood": {"a": "real", "b": "integer"}, "dispersion": {"a": 0.0, "b": "auto"}},
        {"likelihood": {"a": "real", "b": "integer"}},
    ],
    ids=["infinite M beside integers", "noise beside integers"],
)
def test_tables_of_different_likelihoods_are_solved_by_their_own(options):
    """`transform` of the training data is where their objective is highest."""
    random = np.random.default_rng(0)
    activations = random.gamma(1.0, 4.0, size=(40, 2))
    X = {
        "a": activations @ random.normal(size=(2, 6)) + 0.3 * random.normal(size=(40, 6)),
        "b": np.round(activations @ random.normal(size=(2, 5)) + random.normal(size=(40, 5))),
    }
    model = SkellamSNTF(
        {"a": "nr,jr->nj", "b": "nr,kr->nk"},
        2,
        signed=("jr", "kr"),
        activation_rate_prior=1e-3,
        random_state=0,
        tol=1e-9,
        max_iter=3000,
        **options,
    ).fit(X)
    found = model.transform(X)
    assert_allclose(found, model.activations_.reshape(40, -1), rtol=0.01, atol=0.05)
