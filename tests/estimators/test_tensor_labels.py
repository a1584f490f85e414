"""Labels of tensors: what goes in with names comes out with names, whatever the order of axes."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from seminmf import SkellamSNTF, load

xarray = pytest.importorskip("xarray")

CP = "nr,cr,tr->nct"
COUPLED = {"ratings": "nr,jr,kr->njk", "profile": "nr,mr->nm"}


def recording(seed=4):
    random = np.random.default_rng(seed)
    X = xarray.DataArray(
        random.normal(size=(8, 3, 4)),
        dims=("trial", "channel", "time"),
        coords={"channel": ["a", "b", "c"], "time": pd.date_range("2026-01-01", periods=4)},
        attrs={"unit": "µV"},
        name="eeg",
    )
    X[0, 0, 0] = np.nan
    return X


def fitted(X, model=CP, n_components=2, signed="cr", **arguments):
    options = {"tol": 1e-2, "n_init": 1, "random_state": 0, "n_jobs": 1}
    return SkellamSNTF(model, n_components, signed=signed, **options).fit(X, **arguments)


def survey():
    """Ratings and profiles of the same users, as one Dataset."""
    random = np.random.default_rng(5)
    users = [f"user{n}" for n in range(12)]
    a, b, c, d = (random.gamma(1, size=(size, 2)) for size in (12, 5, 4, 3))
    ratings = np.einsum("nr,jr,kr->njk", a, b, c)
    return xarray.Dataset(
        {
            "ratings": (("user", "film", "week"), ratings),
            "profile": (("user", "question"), a @ d.T),
        },
        coords={"user": users, "film": list("abcde"), "question": ["x", "y", "z"]},
    )


def test_factors_have_the_labels_of_the_data():
    X = recording()
    factors = fitted(X).factors_
    assert factors["cr"].index.equals(pd.Index(["a", "b", "c"], name="channel"))
    assert factors["tr"].index.equals(pd.Index(X.time.values, name="time"))
    assert factors["nr"].index.name == "trial"


def test_axes_are_found_by_their_names():
    X = recording()
    model = fitted(X)
    turned = X.transpose("time", "trial", "channel")
    assert_array_equal(model.transform(turned), model.transform(X))
    filled = model.impute(turned)
    assert filled.dims == turned.dims
    assert filled.attrs == X.attrs
    xarray.testing.assert_identical(filled.transpose(*X.dims), model.impute(X))
    other = X.rename(trial="epoch")  # other samples may be called otherwise
    assert model.impute(other).dims == other.dims
    plain = xarray.DataArray(X.values)
    assert_array_equal(model.transform(plain), model.transform(X))
    with pytest.raises(ValueError, match=r"X must have the axes 'trial', 'channel', 'time'; found"):
        model.transform(X.rename(channel="sensor"))


def test_other_labels_than_those_of_the_fit_are_refused():
    X = recording()
    model = fitted(X)
    with pytest.raises(ValueError, match=r"labels of the fit along its axis 'channel'.*found 'c'"):
        model.transform(X.sel(channel=["c", "b", "a"]))
    table = pd.DataFrame(X.values[:, :, 0], columns=["a", "b", "c"])
    model = fitted(table, "nr,cr->nc")
    with pytest.raises(ValueError, match="found 'b' at place 0, where 'a' is"):
        model.transform(table[["b", "a", "c"]])
    assert_array_equal(model.transform(table.iloc[2:]), model.transform(table)[2:])


def test_sources_and_tensors_are_labelled_as_the_data():
    X = recording()
    model = fitted(X)
    sources = model.sources(X)
    assert sources.dims == ("trial", "channel", "time", "r")
    assert_array_equal(sources.channel, X.channel)
    again = model.inverse_transform(model.transform(X))
    assert isinstance(again, xarray.DataArray)
    assert_array_equal(again.time, X.time)
    assert_array_equal(model.sources(X.values), sources.values)


def test_transform_has_names_for_set_output():
    table = pd.DataFrame(recording().values[:, :, 0], columns=["a", "b", "c"]).add_prefix("x")
    table.index = [f"row{n}" for n in range(8)]
    model = fitted(table, "nr,cr->nc").set_output(transform="pandas")
    found = model.transform(table)
    assert list(found.columns) == ["nr_0", "nr_1"]
    assert found.index.equals(table.index)
    again = model.inverse_transform(found)
    assert again.index.equals(table.index)
    assert list(again.columns) == list(table.columns)


def test_a_dataset_is_a_dict_of_coupled_tables():
    X = survey()
    model = fitted(X.isel(user=slice(8)), COUPLED, signed=())
    assert list(model.factors_["jr"].index) == list("abcde")
    assert list(model.factors_["mr"].index) == ["x", "y", "z"]
    new = X.isel(user=slice(8, 12))
    filled = model.impute(new[["ratings"]])
    assert isinstance(filled, xarray.Dataset)
    assert filled.profile.dims == ("user", "question")
    assert_array_equal(filled.profile.user, new.user)
    assert_allclose(filled.profile, new.profile, rtol=0.6, atol=0.6)
    as_dict = model.impute({"ratings": new.ratings})
    assert isinstance(as_dict["ratings"], xarray.DataArray)
    assert as_dict["profile"].index.equals(pd.Index(new.user.values, name="user"))


def test_tables_whose_samples_are_in_another_order_are_refused():
    X = survey()
    profile = X.profile.to_pandas()
    with pytest.raises(ValueError, match=r"X\['profile'\] must have the labels of other tensors"):
        fitted({"ratings": X.ratings, "profile": profile[::-1]}, COUPLED, signed=())


def test_one_string_takes_one_array():
    with pytest.raises(ValueError, match=r"X must be one array.* found a Dataset with 'ratings'"):
        fitted(survey())


def test_latent_letters_have_the_labels_of_what_is_given():
    random = np.random.default_rng(6)
    devices = pd.DataFrame(random.gamma(1, size=(3, 6)), index=["oven", "fridge", "pump"])
    devices.columns = list("abcdef")
    X = pd.DataFrame(random.gamma(1, size=(9, 3)) @ devices.to_numpy(), columns=list("abcdef"))
    model = fitted(X, "nk,kt->nt", 3, (), factors={"kt": devices}, frozen={"kt": True})
    assert list(model.factors_["nk"].columns) == ["oven", "fridge", "pump"]
    assert list(model.get_feature_names_out()) == ["nk_oven", "nk_fridge", "nk_pump"]
    pd.testing.assert_frame_equal(model.factors_["kt"], devices, check_names=False)
    with pytest.raises(ValueError, match=r"factors\['kt'\] must have the labels of X"):
        fitted(X, "nk,kt->nt", 3, (), factors={"kt": devices[list("fedcba")]})


def test_what_began_earlier_is_labelled_in_the_unit_of_time():
    random = np.random.default_rng(7)
    X = xarray.DataArray(
        random.gamma(1, size=(30, 2)), dims=("time", "site"), coords={"time": np.arange(30) / 4}
    )
    model = fitted(X, "(t-d)r,dcr->tc", {"r": 1, "d": 3}, ())
    began = model.factors_["(t-d)r"]
    assert_allclose(began.index, np.arange(-2, 30) / 4)
    assert model.factors_["dcr"].dims == ("d", "site", "r")


def test_factors_with_one_axis_are_series():
    X = pd.DataFrame(np.random.default_rng(8).gamma(1, size=(9, 4)), columns=list("abcd"))
    model = fitted(X, "nk,kt - n,t -> nt", 2, ())
    assert isinstance(model.factors_["t"], pd.Series)
    assert list(model.factors_["t"].index) == list("abcd")


def test_files_keep_labels(tmp_path):
    X = recording()
    X = X.assign_coords(trial=[f"day {n}" for n in range(8)])
    model = fitted(X)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for name, factor in model.factors_.items():
        pd.testing.assert_frame_equal(again.factors_[name], factor)
    assert_array_equal(again.transform(X), model.transform(X))


def test_xarray_is_imported_by_users_only(tmp_path):
    X = pd.DataFrame(np.random.default_rng(9).normal(size=(8, 3)), columns=list("abc"))
    model = fitted(X, "nr,rbc,bct->nt", {"r": 1, "b": 2, "c": 1}, "bct")
    model.save(tmp_path / "model")
    code = (
        "import sys, seminmf\n"
        f"model = seminmf.load({str(tmp_path / 'model')!r})\n"
        "print(type(model.factors_['bct']).__name__, type(model.factors_['nr']).__name__)\n"
        "assert 'xarray' not in sys.modules\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["ndarray", "DataFrame"]


def test_tables_of_polars_come_back():
    polars = pytest.importorskip("polars")
    values = np.random.default_rng(10).gamma(1, size=(9, 4))
    values[0, 0] = np.nan
    X = polars.DataFrame(values, schema=list("abcd"))
    model = fitted(X, "nr,cr->nc", 2, ())
    assert list(model.factors_["cr"].index) == list("abcd")
    filled = model.impute(X)
    assert isinstance(filled, polars.DataFrame)
    assert filled.columns == X.columns
    with pytest.raises(ValueError, match="labels of the fit"):
        model.transform(X[list("dcba")])
