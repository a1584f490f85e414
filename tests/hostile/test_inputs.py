"""Data of any library are read as they are meant, or refused in one sentence before any work."""

import datetime
import warnings
from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from kinds import KINDS, Sliced, chunked, stored
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from seminmf import (
    BayesianSkellamSNMF,
    EuclideanSNMF,
    PriorLearner,
    SkellamSNMF,
    select_n_components,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning"),
]

J, I, K = 7, 4, 2
HIDDEN = (1, 2)
FIRST_ROUNDED = 2**53 + 1


def without_noise(estimator, likelihood="real", **options):
    """Noise has a size, and refuses numbers of quite another one."""
    dispersion = 0.0 if likelihood == "real" else "auto"
    common = {"dispersion": dispersion, "random_state": 0, "max_iter": 5}
    return estimator(K, likelihood=likelihood, **common, **options)


ESTIMATORS = {
    "map": partial(without_noise, SkellamSNMF),
    "bayesian": partial(without_noise, BayesianSkellamSNMF),
    "euclidean": lambda **options: EuclideanSNMF(K, random_state=0, max_iter=5, **options),
}
SKELLAM = ["map", "bayesian"]


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return ESTIMATORS[request.param]


@pytest.fixture(params=SKELLAM)
def skellam(request):
    return ESTIMATORS[request.param]


def data(dtype=np.float64):
    """Signed integers as floats, with a gap."""
    X = np.random.default_rng(0).integers(-9, 10, (J, I)).astype(dtype)
    X[HIDDEN] = np.nan
    return X


def whole():
    return np.nan_to_num(data(), nan=5.0)


def frame():
    return pd.DataFrame(data(), columns=list("abcd"))


def with_gap(gap, array=None):
    """The data as objects, with something in the place of the gap."""
    objects = (data() if array is None else array).astype(object)
    objects[HIDDEN] = gap
    return objects


def masked(dtype=np.float64, hidden=1e6):
    values = np.where(np.isnan(data()), hidden, data()).astype(dtype)
    return np.ma.masked_array(values, mask=np.isnan(data()))


def assert_refuses(match, function, *arguments, error=ValueError, **options):
    """One sentence, whose text has the pattern."""
    with pytest.raises(error, match=match) as caught:
        function(*arguments, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence and sentence.endswith(".")


def assert_same_fit(estimator, X, expected):
    """X is fitted, transformed, scored and imputed as `expected` is."""
    model, other = estimator().fit(X), estimator().fit(expected)
    assert model.components_.dtype == other.components_.dtype
    np.testing.assert_array_equal(model.components_, other.components_)
    np.testing.assert_array_equal(model.activations_, other.activations_)
    np.testing.assert_array_equal(other.transform(X), other.transform(expected))
    np.testing.assert_array_equal(other.predict(X), other.predict(expected))
    np.testing.assert_array_equal(np.asarray(other.impute(X)), np.asarray(other.impute(expected)))
    assert other.score(X) == other.score(expected)


# --- Masks ---


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8, object])
def test_a_mask_is_a_gap(estimator, dtype):
    kept = np.float32 if dtype == np.float32 else np.float64
    assert_same_fit(estimator, masked(dtype, hidden=77), data(kept))


def test_a_mask_hides_anything(estimator):
    for hidden in (np.inf, np.nan, 1e308):
        assert_same_fit(estimator, masked(hidden=hidden), data())
    assert_same_fit(estimator, masked(np.int64, hidden=FIRST_ROUNDED), data())


def test_a_mask_of_nothing(estimator):
    assert_same_fit(estimator, np.ma.masked_array(whole()), whole())


def test_rows_with_masks(estimator):
    assert_same_fit(estimator, list(masked()), data())


@pytest.mark.parametrize("kind", ["disk", "dask"])
def test_masks_of_parts(skellam, kind):
    """What is read in parts may have masks, too."""
    X = Sliced(masked()) if kind == "disk" else da.from_array(masked(), chunks=(4, -1))
    expected = skellam().fit(KINDS[kind](data()))
    model = skellam().fit(X)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(np.asarray(model.transform(X)), expected.transform(data()))


@pytest.mark.slow
def test_masks_in_what_else_takes_data():
    learner = PriorLearner(BayesianSkellamSNMF(K, random_state=0), max_iter=1)
    learned = [learner.fit([X, X]).lower_bounds_ for X in (masked(), data())]
    np.testing.assert_array_equal(*learned)
    found = [select_n_components(X, [1], random_state=0).table for X in (masked(), data())]
    pd.testing.assert_frame_equal(*found)


def test_masks_in_batches(skellam):
    batches = [skellam().partial_fit(X).partial_fit(X) for X in (masked(), data())]
    np.testing.assert_array_equal(batches[0].components_, batches[1].components_)


# --- Dates ---

DATES = pd.date_range("2020-01-01", periods=J)
DATE_ARRAYS = {
    "dates": np.zeros((J, I), dtype="datetime64[s]"),
    "NaT": np.full((J, I), np.datetime64("NaT")),
    "spans": np.zeros((J, I), dtype="timedelta64[s]"),
    "masked": np.ma.masked_array(np.zeros((J, I), dtype="datetime64[s]"), mask=True),
    "frame": pd.DataFrame({"a": DATES, "b": DATES}),
    "column": frame().assign(t=DATES),
    "zone": frame().assign(t=DATES.tz_localize("UTC")),
    "span column": frame().assign(t=DATES - DATES[0]),
    "arrow": frame().assign(t=DATES.astype("timestamp[ns][pyarrow]")),
}


@pytest.mark.parametrize("X", DATE_ARRAYS.values(), ids=DATE_ARRAYS)
def test_dates(estimator, X):
    match = r"^X must hold numbers, with NaN for gaps; found dates or spans of time \("
    assert_refuses(match, estimator().fit, X)


def test_the_column_of_dates_is_named(estimator):
    assert_refuses("datetime64.* in column 't'", estimator().fit, frame().assign(t=DATES))


@pytest.mark.parametrize(
    "value",
    [
        pd.NaT,
        np.datetime64("NaT"),
        np.timedelta64("NaT"),
        np.timedelta64(3, "s"),
        pd.Timestamp("2020"),
        pd.Timedelta(3),
        datetime.date(2020, 1, 1),
    ],
)
def test_dates_among_objects(estimator, value):
    match = r"found dates or spans of time \(.* in row 1, column 2\)\.$"
    objects = with_gap(value)
    assert_refuses(match, estimator().fit, objects)
    assert_refuses(match, estimator().fit, objects.tolist())
    assert_refuses(match, estimator().fit, pd.DataFrame(objects).assign(other=1.0))


@pytest.mark.parametrize("value", [pd.Period("2020"), {}, object()])
def test_objects_that_are_no_numbers(estimator, value):
    match = rf"^X must hold numbers, with NaN for gaps; found .*not '{type(value).__name__}'\)\.$"
    assert_refuses(match, estimator().fit, with_gap(value), error=TypeError)


def test_dates_in_what_else_takes_data():
    learner = PriorLearner(BayesianSkellamSNMF(K))
    assert_refuses("found dates", learner.fit, [data(), DATE_ARRAYS["dates"]])
    assert_refuses("found dates", learner.partial_fit, DATE_ARRAYS["dates"])
    assert_refuses("found dates", select_n_components, DATE_ARRAYS["dates"], [1])


def test_dates_in_a_fitted_model(estimator):
    model = estimator().fit(data())
    for ask in (model.transform, model.predict, model.impute, model.score):
        assert_refuses("found dates", ask, DATE_ARRAYS["dates"])


# --- Missing values of other libraries ---

WITH_GAPS = {
    "NA": with_gap(pd.NA),
    "None": with_gap(None),
    "list": with_gap(pd.NA).tolist(),
    "objects": pd.DataFrame(with_gap(pd.NA)),
    "Float64": frame().astype("Float64"),
    "Int64": frame().astype("Int64"),
    "Int64 and objects": pd.DataFrame(with_gap(pd.NA)).astype({0: "Int64"}),
    "arrow": frame().astype("float64[pyarrow]"),
    "arrow integers": frame().astype("Int64").astype("int64[pyarrow]"),
    "category": frame().astype({"c": "category"}),
    "sparse": frame().astype(pd.SparseDtype(float, np.nan)),
    "sparse and others": frame().astype({"a": pd.SparseDtype(float, 0.0)}),
}


@pytest.mark.parametrize("X", WITH_GAPS.values(), ids=WITH_GAPS)
def test_missing_values_are_gaps(estimator, X):
    assert_same_fit(estimator, X, data())


@pytest.mark.parametrize("dtype", ["Float32", "float[pyarrow]", pd.SparseDtype("float32", np.nan)])
def test_float32_of_pandas_stays(estimator, dtype):
    assert_same_fit(estimator, frame().astype("float32").astype(dtype), data(np.float32))


def test_zeros_of_a_sparse_frame_are_data(estimator):
    X = np.where(np.abs(whole()) > 4, whole(), 0.0)
    assert_same_fit(estimator, pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(X)), X)


def test_labels_count_for_frames_of_any_type(estimator):
    model = estimator().fit(frame().astype("Int64"))
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame().astype("Float64")[list("bacd")])


# --- polars ---


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_polars(estimator, dtype):
    polars = pytest.importorskip("polars")
    X = polars.DataFrame(data(dtype), schema=list("abcd"))
    assert_same_fit(estimator, X, data(dtype))
    assert_same_fit(estimator, X.fill_nan(None), data(dtype))


def test_polars_integers_with_gaps(estimator):
    polars = pytest.importorskip("polars")
    X = polars.DataFrame(frame().to_dict("list")).fill_nan(None).cast(polars.Int64)
    assert_same_fit(estimator, X, data())
    column = polars.Series("a", [FIRST_ROUNDED, None, *range(J - 2)])
    match = rf"found {FIRST_ROUNDED} in row 0, column 0\.$"
    assert_refuses(match, estimator().fit, X.with_columns(column))


def test_polars_truth_values_with_gaps(estimator):
    polars = pytest.importorskip("polars")
    truth = np.where(np.isnan(data()), None, data() > 0).astype(object)
    X = polars.DataFrame(truth.tolist(), schema=list("abcd"), orient="row")
    assert_same_fit(estimator, X, truth.astype(float))


def test_polars_dates_and_text(estimator):
    polars = pytest.importorskip("polars")
    X = polars.DataFrame(whole(), schema=list("abcd"))
    for value in (datetime.date(2020, 1, 1), datetime.timedelta(1), datetime.time(3)):
        dated = X.with_columns(t=polars.lit(value))
        assert_refuses("found dates or spans of time .* in column 't'", estimator().fit, dated)
    assert_refuses("found text", estimator().fit, X.with_columns(t=polars.lit("x")))


def test_a_lazy_frame_is_to_be_collected(estimator):
    polars = pytest.importorskip("polars")
    X = polars.DataFrame(data(), schema=list("abcd"))
    model = estimator().fit(X)
    for ask in (estimator().fit, model.transform, model.predict, model.impute, model.score):
        assert_refuses(r"^X must .*LazyFrame.*`collect\(\)`", ask, X.lazy(), error=TypeError)


@pytest.mark.parametrize("shape", [(J, I), (I, I), (I, J)])
def test_impute_returns_a_polars_frame(estimator, shape):
    """Also of a square matrix, whose rows could be taken for columns."""
    polars = pytest.importorskip("polars")
    array = np.random.default_rng(1).normal(size=shape)
    array[1, 2] = np.nan
    X = polars.DataFrame(array, schema=[f"f{i}" for i in range(shape[1])], orient="row")
    model = estimator().fit(X)
    filled = model.impute(X)
    assert isinstance(filled, polars.DataFrame) and filled.columns == X.columns
    np.testing.assert_array_equal(filled.to_numpy(), model.impute(array))


def test_intervals_of_a_polars_frame():
    polars = pytest.importorskip("polars")
    X = polars.DataFrame(data(), schema=list("abcd"))
    parts = ESTIMATORS["bayesian"]().fit(X).impute(X, return_interval=True, n_draws=5)
    assert all(isinstance(part, polars.DataFrame) for part in parts)


# --- torch ---


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("gradient", [False, True])
def test_tensors(estimator, name, gradient):
    """Small integers, which all types hold."""
    torch = pytest.importorskip("torch")
    X = torch.tensor(data(), dtype=getattr(torch, name), requires_grad=gradient)
    kept = np.float32 if name == "float32" else np.float64
    assert_same_fit(estimator, X, data(kept))
    assert_same_fit(estimator, list(X.double()), data())


def test_tensors_of_integers_and_truth_values(estimator):
    torch = pytest.importorskip("torch")
    assert_same_fit(estimator, torch.tensor(whole()).long(), whole())
    assert_same_fit(estimator, torch.tensor(whole()) > 0, (whole() > 0).astype(float))


def test_tensors_that_are_refused(estimator):
    torch = pytest.importorskip("torch")
    X = torch.tensor(whole())
    sentence = r"^X must be dense if it is a tensor; found torch\.sparse_coo.*`to_dense\(\)`"
    assert_refuses(sentence, estimator().fit, X.to_sparse(), error=TypeError)
    assert_refuses("X must be real; found complex128", estimator().fit, X + 1j)


def test_tensors_as_weights_and_activations(estimator):
    torch = pytest.importorskip("torch")
    weights = torch.arange(1.0, J + 1, dtype=torch.bfloat16, requires_grad=True)
    model = estimator().fit(data(), sample_weight=weights)
    other = estimator().fit(data(), sample_weight=np.arange(1.0, J + 1))
    np.testing.assert_array_equal(model.components_, other.components_)
    tensor = torch.tensor(model.activations_, requires_grad=True)
    expected = model.inverse_transform(model.activations_)
    np.testing.assert_array_equal(model.inverse_transform(tensor), expected)


# --- Sparse matrices ---


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, bool])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
def test_sparse_matrices_of_other_types(skellam, dtype, form):
    values = stored(data())
    other = values.asformat(form)
    other.data = other.data.astype(dtype)
    values.data = values.data.astype(dtype).astype(np.float64)
    for zeros in ("missing", "observed"):
        model = skellam(sparse_zeros=zeros).fit(other)
        expected = skellam(sparse_zeros=zeros).fit(values)
        np.testing.assert_array_equal(model.components_, expected.components_)
        np.testing.assert_array_equal(model.transform(other), expected.transform(values))
        assert model.score(other) == expected.score(values)


def test_truth_values_that_are_stored_twice(skellam):
    """Their sum is a truth value, as SciPy has it."""
    rows, columns = np.array([0, 0, 1, 2]), np.array([1, 1, 0, 2])
    X = sparse.coo_array((np.ones(4, dtype=bool), (rows, columns)), shape=(3, 3))
    np.testing.assert_array_equal(
        skellam(sparse_zeros="observed").fit(X).components_,
        skellam(sparse_zeros="observed").fit(X.toarray()).components_,
    )


def test_truth_values_in_parts(skellam):
    truth = whole() > 0
    expected = skellam().fit(truth).components_
    np.testing.assert_array_equal(skellam().fit(Sliced(truth)).components_, expected)
    np.testing.assert_allclose(
        skellam().fit(chunked(truth)).components_, expected, rtol=1e-9, atol=1e-9
    )


def test_long_doubles_beyond_float64(skellam):
    X = whole().astype(np.longdouble)
    X[HIDDEN] = np.longdouble("1e400")
    if np.isinf(X[HIDDEN]):
        pytest.skip("long double is no longer than double here")
    match = "X must be finite, or NaN for a gap; found inf in row 1, column 2"
    for kind in (np.asarray, sparse.csr_array):
        assert_refuses(match, skellam().fit, kind(X))


# --- Large integers ---


def integers(value, dtype=np.int64):
    X = np.abs(whole()).astype(dtype)
    X[HIDDEN] = value
    return X


def large_integers(value):
    """A matrix with a large integer, in all the forms that have 64 bits."""
    X = integers(value)
    yield X
    yield integers(value, np.uint64)
    yield X.astype(object)
    yield X.tolist()
    yield [[0.5, *row[1:]] for row in X.tolist()]
    yield pd.DataFrame(X)
    yield pd.DataFrame(X).assign(other=0.5)
    yield pd.DataFrame(X).astype("Int64")
    yield pd.DataFrame(X).astype("Int64").mask(pd.DataFrame(X) == X[0, 0])


ROUNDED = rf"^X must hold numbers that float64 can hold, .*±2\^53; found {FIRST_ROUNDED} "


def test_integers_that_would_be_rounded(estimator):
    for X in large_integers(FIRST_ROUNDED):
        assert_refuses(ROUNDED + r"in row 1, column 2\.$", estimator().fit, X)
    match = rf"found -{FIRST_ROUNDED} in row 1, column 2"
    assert_refuses(match, estimator().fit, integers(-FIRST_ROUNDED))
    for value in (np.iinfo(np.int64).max, np.iinfo(np.int64).min + 1):
        assert_refuses(f"found {value} ", estimator().fit, integers(value))
    biggest = np.iinfo(np.uint64).max
    assert_refuses(f"found {biggest} ", estimator().fit, integers(biggest, np.uint64))


@pytest.mark.parametrize("make", [stored, Sliced, chunked])
def test_integers_that_would_be_rounded_in_other_sources(skellam, make):
    X = integers(3)
    X[5, 1] = FIRST_ROUNDED
    found = sparse.csr_array(X) if make is stored else make(X)
    assert_refuses(ROUNDED + r"in row 5, column 1\.$", skellam().fit, found)


@pytest.mark.parametrize("power", [30, 400, 5000])
def test_integers_beyond_64_bits(estimator, power):
    match = r"float64 can hold.*found an integer of \d+ bits in row 1, column 2\.$"
    assert_refuses(match, estimator().fit, with_gap(10**power).tolist())


@pytest.mark.parametrize("value", [2**53, 2**53 + 2, -(2**53), 2**62, -(2**63)])
def test_large_integers_that_float64_holds(estimator, value):
    X = integers(value)
    assert_same_fit(estimator, X, X.astype(np.float64))


# --- A sample without an observed cell ---


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_gaps_alone(estimator, kind):
    """Treated as it is among others."""
    model, other = estimator().fit(data()), np.vstack([np.full(I, np.nan), data()])
    if kind in ("sparse", "dask") and isinstance(model, EuclideanSNMF):
        pytest.skip("takes arrays only")
    X = KINDS[kind](other[:1])
    np.testing.assert_array_equal(np.asarray(model.transform(X)), model.transform(other)[:1])
    np.testing.assert_array_equal(model.predict(X), model.predict(other)[:1])
    np.testing.assert_allclose(np.asarray(model.impute(X)), model.impute(other)[:1], rtol=1e-14)
    assert_refuses(r"^X must have at least one observed cell for a score", model.score, X)


def test_a_batch_of_gaps(skellam):
    model = skellam().partial_fit(data())
    before = model.components_.copy()
    match = "X must have at least one observed cell"
    assert_refuses(match, model.partial_fit, np.full((2, I), np.nan))
    np.testing.assert_array_equal(model.components_, before)


# --- Large numbers ---


def test_numbers_whose_sums_overflow(estimator):
    for dtype, size in ((np.float64, 1e307), (np.float64, 1.7e308), (np.float32, 1e37)):
        X = (data() / 9 * size).astype(dtype)
        match = rf"^X must be within ±\S+ for 4 features of {np.dtype(dtype)}, .*; found a value of"
        assert_refuses(match, estimator().fit, X)
        model = estimator().fit(data(dtype))
        for ask in (model.transform, model.predict, model.impute, model.score):
            assert_refuses(match, ask, X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_largest_numbers(estimator, dtype):
    largest = float(np.finfo(dtype).max) / I / 2**20
    X = (data() / 9 * 0.99 * largest).astype(dtype)
    for model in (estimator().fit(X), estimator().fit(data(dtype))):
        for array in (model.components_, model.activations_, model.transform(X), model.impute(X)):
            assert np.isfinite(array).all()
        assert not np.isnan(model.score(X))


# --- Weights ---


def test_missing_weights(estimator):
    for gap in (np.ma.masked, None, pd.NA, np.nan):
        weights = [1.0] * J
        weights[3] = 5.0 if gap is np.ma.masked else gap
        if gap is np.ma.masked:
            weights = np.ma.masked_array(weights, mask=np.arange(J) == 3)
        match = r"^sample_weight must be finite for each sample; found nan for sample 3"
        assert_refuses(match, estimator().fit, data(), sample_weight=weights)
    series = pd.Series([1, 2, 3, None, 4, 5, 6], dtype="Int64")
    assert_refuses("found nan for sample 3", estimator().fit, data(), sample_weight=series)


def test_a_mask_of_no_weight(estimator):
    weights = np.arange(1.0, J + 1)
    model = estimator().fit(data(), sample_weight=np.ma.masked_array(weights))
    expected = estimator().fit(data(), sample_weight=weights)
    np.testing.assert_array_equal(model.components_, expected.components_)


def test_weights_that_are_no_numbers(estimator):
    match = r"^sample_weight must (be|hold) .*number"
    for weights in (DATES, pd.Series(DATES), np.ones(J) * 1j, pd.Series(["a"] * J)):
        assert_refuses(match, estimator().fit, data(), sample_weight=weights)


@pytest.mark.parametrize("size", [1e300, 1.7e308])
def test_huge_weights(skellam, size):
    weights = np.ones(J)
    weights[2] = size
    for dtype in (np.float64, np.float32):
        match = rf"^sample_weight must sum to at most \S+ for data of {np.dtype(dtype)}; found"
        assert_refuses(match, skellam().fit, data(dtype), sample_weight=weights)
        assert_refuses(match, skellam().partial_fit, data(dtype), sample_weight=weights)


@pytest.mark.parametrize("size", [1e300, 1.7e308])
def test_huge_weights_without_a_prior(size):
    model = ESTIMATORS["euclidean"]().fit(data(), sample_weight=np.full(J, size))
    expected = ESTIMATORS["euclidean"]().fit(data())
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-9)
    assert not np.isnan(model.objectives_).any()


@pytest.mark.parametrize("likelihood", ["real", "integer"])
@pytest.mark.parametrize(("dtype", "total"), [(np.float64, 1e100), (np.float32, 1e15)])
def test_the_largest_weights(skellam, likelihood, dtype, total):
    X = np.where(np.isnan(data()), np.nan, data() * 2**20).astype(dtype)
    weights = np.full(J, 0.99 * total / J)
    model = skellam(likelihood=likelihood).fit(X, sample_weight=weights)
    for array in (model.components_, model.activations_, model.transform(X), model.score(X)):
        assert np.isfinite(array).all()


def messages(function, *arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        function(*arguments, **options)
    return [warning for warning in caught if "sample_weight" in str(warning.message)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_normalised_weights(skellam, dtype):
    weights = np.arange(1, J + 1, dtype=dtype)
    for ask in (skellam().fit, skellam().partial_fit):
        (warning,) = messages(ask, data(), sample_weight=weights / weights.sum())
        text = str(warning.message)
        assert "sums to 1" in text and "against the prior" in text and "repeats" in text
        assert warning.filename == __file__


def test_normalised_weights_where_they_do_not_matter(estimator):
    weights = np.full(J, 1 / J)
    assert not messages(estimator().fit(data()).score, data(), sample_weight=weights)
    assert not messages(ESTIMATORS["euclidean"]().fit, data(), sample_weight=weights)


@pytest.mark.parametrize(
    "weights",
    [
        np.ones(J),
        np.eye(J)[0],  # one sample of all
        np.arange(J),
        np.full(J, 0.5),
        np.linspace(0.1, 1.9, J),
        np.full(J, 1.001 / J),
        np.full(J, 1e-6),
        np.full(J, 1e6),
    ],
)
def test_other_weights_are_nothing_to_warn_of(skellam, weights):
    assert not messages(skellam().fit, data(), sample_weight=weights)


def test_a_single_sample_of_weight_1(skellam):
    assert not messages(skellam().fit, data()[:1], sample_weight=[1.0])


@pytest.mark.parametrize("kind", KINDS)
def test_score_counts_a_weight_of_2_as_the_sample_twice(estimator, kind):
    model, weights = estimator().fit(data()), np.arange(J)
    if kind in ("sparse", "dask") and isinstance(model, EuclideanSNMF):
        pytest.skip("takes arrays only")
    X = KINDS[kind](data())
    expected = model.score(np.repeat(data(), weights, axis=0))
    assert expected != pytest.approx(model.score(data()), rel=1e-3)
    for size in (1.0, 1e-300, 1e300):
        found = model.score(X, sample_weight=size * weights)
        assert found == pytest.approx(expected, rel=1e-12)
    assert model.score(X, sample_weight=np.ones(J)) == model.score(X)


@pytest.mark.parametrize("kind", KINDS)
def test_score_of_gaps_and_of_weights_of_0(estimator, kind):
    model = estimator().fit(data())
    if kind in ("sparse", "dask") and isinstance(model, EuclideanSNMF):
        pytest.skip("takes arrays only")
    X, weights = data(), np.zeros(J)
    X[2], weights[2] = np.nan, 1.0
    match = "X must have at least one observed cell for a score, in a sample whose weight is above"
    assert_refuses(match, model.score, KINDS[kind](X), sample_weight=weights)
    match = "sample_weight must be at least 0"
    assert_refuses(match, model.score, KINDS[kind](X), sample_weight=-weights)
