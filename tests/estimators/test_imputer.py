"""SNMFImputer: gaps filled, and nothing else, as scikit-learn's imputers do it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, SNMFImputer
from seminmf._selection.filling import choose_by_fills

SQUARES = EuclideanSNMF(1, max_iter=50, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [SNMFImputer(1, estimator=clone(SQUARES)), SNMFImputer(estimator=clone(SQUARES))]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def data(n_components=2, noise=0.05):
    """Samples of some components, around a mean, and the same with gaps."""
    random = np.random.RandomState(0)
    X = random.gamma(1.0, size=(60, n_components)) @ random.normal(size=(n_components, 6)) + 10.0
    X += noise * random.normal(size=X.shape)
    return X, np.where(random.uniform(size=X.shape) < 0.15, np.nan, X)


def test_gaps_are_filled_and_nothing_else():
    X, known = data()
    imputer = SNMFImputer(2, random_state=0)
    filled = imputer.fit_transform(known)
    seen = ~np.isnan(known)
    assert_array_equal(filled[seen], X[seen])
    assert np.sqrt(np.mean((filled - X)[~seen] ** 2)) < 0.3 * X.std()
    assert imputer.n_components_ == 2 and imputer.selection_ is None
    assert_array_equal(imputer.estimator_.impute(known), filled)


def test_each_sample_is_filled_alone():
    _, known = data()
    imputer = SNMFImputer(estimator=SQUARES, n_components=2).fit(known)
    whole = imputer.transform(known[:5])
    assert_allclose(np.vstack([imputer.transform(row[None]) for row in known[:5]]), whole)


def test_the_number_of_components_is_chosen_by_hidden_cells():
    random = np.random.RandomState(0)
    known = random.gamma(1.0, size=(200, 3)) @ random.normal(size=(3, 12))
    known += 0.1 * random.normal(size=known.shape)
    imputer = SNMFImputer(estimator=EuclideanSNMF(max_iter=500, random_state=0), random_state=0)
    imputer.fit(known)
    assert imputer.n_components_ == imputer.selection_.best == len(imputer.estimator_.components_)
    assert imputer.n_components_ == 3
    table = imputer.selection_.table
    assert list(table["n_components"]) == [1, 2, 3, 4]
    assert table["score"].max() <= 0 and "squared error" in imputer.selection_.plot().get_ylabel()
    again = clone(imputer).fit(known)
    pd.testing.assert_frame_equal(again.selection_.table, table)


def test_scores_are_errors_of_hidden_cells():
    """Of a model that fills in zeros the score is minus the mean square."""
    X, _ = data()
    X = (X - X.mean(axis=0)) / X.std(axis=0)

    class Zeros(EuclideanSNMF):
        def impute(self, X, **options):
            assert np.isnan(X).sum() == 36  # a tenth of all cells is hidden
            return np.nan_to_num(X)

    random = np.random.RandomState(0)
    found = choose_by_fills(Zeros(max_iter=1), X, [1, 2], 3, 0.1, random, 1)
    assert_allclose(found.table["score"], -1, rtol=0.3)
    assert found.table["score"][0] == found.table["score"][1] and found.best == 1


@pytest.mark.parametrize(
    "estimator",
    [SkellamSNMF(3, random_state=0), BayesianSkellamSNMF(3, max_iter=20, random_state=0)],
    ids=["map", "posterior"],
)
def test_an_estimator_of_ones_own(estimator):
    _, known = data()
    imputer = SNMFImputer(None, estimator=estimator).fit(known)
    assert imputer.n_components_ == 3 and not hasattr(estimator, "activations_")
    assert_array_equal(imputer.transform(known), clone(estimator).fit(known).impute(known))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("indicator", [False, True])
@pytest.mark.parametrize("mark", [np.nan, -999.0])
def test_it_is_used_as_those_of_scikit_learn(keep, indicator, mark):
    """Shapes, names, indicators and features that are never observed."""
    _, known = data()
    known[:, 4] = np.nan
    known[:, 0] = 1.0
    frame = pd.DataFrame(known, columns=list("abcdef"), index=range(100, 160)).fillna(mark)
    options = {"missing_values": mark, "add_indicator": indicator, "keep_empty_features": keep}
    ours, theirs = SNMFImputer(2, estimator=SQUARES, **options), SimpleImputer(**options)
    expected = theirs.set_output(transform="pandas").fit_transform(frame)
    found = ours.set_output(transform="pandas").fit_transform(frame)
    assert list(found.columns) == list(expected.columns) == list(ours.get_feature_names_out())
    assert_array_equal(found.index, expected.index)
    assert (found.dtypes == expected.dtypes).all()
    names = [name for name in frame if name in found]
    seen = frame[names] != mark if mark == -999 else frame[names].notna()
    assert_array_equal(found[names].to_numpy()[seen], expected[names].to_numpy()[seen])
    flags = [name for name in found if name.startswith("missingindicator")]
    assert_array_equal(found[flags], expected[flags])
    if keep:
        assert (found["e"] == 0).all()
    plain = clone(ours).set_output(transform="default")
    assert isinstance(plain.fit_transform(frame), np.ndarray)


def test_new_gaps_are_filled_where_there_were_none():
    X, _ = data()
    imputer = SNMFImputer(2, estimator=SQUARES).fit(X)
    new = X[:3].copy()
    new[1, 2] = np.nan
    assert not np.isnan(imputer.transform(new)).any()
    assert_array_equal(imputer.transform(X), X)


def test_other_tables_and_types():
    pl = pytest.importorskip("polars")
    _, known = data()
    imputer = SNMFImputer(2, estimator=SQUARES)
    expected = imputer.fit_transform(known)
    nullable = pd.DataFrame(known, columns=list("abcdef")).convert_dtypes()
    assert_array_equal(clone(imputer).fit_transform(nullable), expected)
    frame = pl.DataFrame(known, schema=list("abcdef"))
    filled = clone(imputer).set_output(transform="polars").fit_transform(frame)
    assert isinstance(filled, pl.DataFrame) and filled.columns == list("abcdef")
    assert_array_equal(filled.to_numpy(), expected)
    assert imputer.fit_transform(known.astype(np.float32)).dtype == np.float32


def test_pickles_and_pipelines():
    X, known = data()
    pipe = make_pipeline(SNMFImputer(2, estimator=SQUARES), Ridge()).fit(known, X[:, 0])
    assert pipe.score(known, X[:, 0]) > 0.5
    again = pickle.loads(pickle.dumps(pipe))
    assert_array_equal(again.predict(known), pipe.predict(known))


def test_nothing_to_hide_is_one_component():
    imputer = SNMFImputer(estimator=SQUARES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer.fit([[1.0, np.nan], [np.nan, 2.0]])
    assert imputer.n_components_ == 1 and imputer.selection_ is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": "all"}, "n_components must be 'auto', None or an integer.*found 'all'"),
        ({"n_components": 0}, "n_components must be an integer of at least 1; found 0"),
        ({"n_components": None}, "n_components must not be None without an estimator"),
        ({"estimator": KNNImputer()}, "estimator must be None, a SkellamSNMF.*found KNNImputer"),
        ({"missing_values": "?"}, "missing_values must be a number or NaN; found '[?]'"),
        ({"add_indicator": 2}, "add_indicator must be True or False; found 2"),
    ],
)
def test_what_it_refuses(options, words):
    with pytest.raises(ValueError, match=words):
        SNMFImputer(**options).fit(data()[1])


def test_data_that_it_refuses():
    _, known = data()
    with pytest.raises(ValueError, match=r"-1 for gaps, as missing_values says; found NaN"):
        SNMFImputer(1, missing_values=-1).fit(known)
    with pytest.raises(ValueError, match="at least one observed cell; found gaps"):
        SNMFImputer(1).fit(np.full((3, 2), np.nan))
    known[2, 3] = np.inf
    with pytest.raises(ValueError, match=r"finite.*found inf in row 2, column 3"):
        SNMFImputer(1).fit(known)
