"""Data sets arrive complete, in the forms scikit-learn's loaders offer, or are refused."""

import gzip
from collections import Counter
from http.client import IncompleteRead
from importlib.metadata import PackageNotFoundError, files
from itertools import permutations
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest

from seminmf import datasets

LOADERS = [
    pytest.param(datasets.load_ionosphere, (351, 34), {"g": 225, "b": 126}, id="ionosphere"),
    pytest.param(
        datasets.load_segment,
        (2310, 19),
        dict.fromkeys(
            ["brickface", "cement", "foliage", "grass", "path", "sky", "window"],
            330,
        ),
        id="segment",
    ),
    pytest.param(
        datasets.load_shuttle,
        (14500, 9),
        {"1": 11478, "2": 13, "3": 39, "4": 2155, "5": 809, "6": 4, "7": 2},
        id="shuttle",
    ),
]


@pytest.mark.parametrize(("loader", "shape", "class_counts"), LOADERS)
def test_bunch(loader, shape, class_counts):
    bunch = loader()
    assert bunch.data.shape == shape
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert Counter(bunch.target.tolist()) == class_counts
    assert list(bunch.target_names) == sorted(class_counts)
    assert len(bunch.feature_names) == shape[1]
    assert bunch.frame is None
    assert "UCI" in bunch.DESCR and "CC BY 4.0" in bunch.DESCR


@pytest.mark.parametrize(("loader", "shape", "class_counts"), LOADERS)
def test_forms_agree(loader, shape, class_counts):
    bunch = loader()
    X, y = loader(return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)

    framed = loader(as_frame=True)
    assert isinstance(framed.data, pd.DataFrame) and isinstance(framed.target, pd.Series)
    assert framed.frame.shape == (shape[0], shape[1] + 1)
    assert list(framed.data.columns) == framed.feature_names == bunch.feature_names
    np.testing.assert_array_equal(framed.data.to_numpy(), X)
    np.testing.assert_array_equal(framed.target.to_numpy(dtype=str), y)

    X_frame, y_frame = loader(return_X_y=True, as_frame=True)
    pd.testing.assert_frame_equal(X_frame, framed.data)
    pd.testing.assert_series_equal(y_frame, framed.target)


def test_ionosphere_values():
    X, y = datasets.load_ionosphere(return_X_y=True)
    assert X.min() == -1.0 and X.max() == 1.0
    assert not X[:, 1].any()
    np.testing.assert_array_equal(X[0, :4], [1.0, 0.0, 0.99539, -0.05889])
    assert list(y[:2]) == ["g", "b"]


def test_segment_values():
    X = datasets.load_segment(as_frame=True).data
    assert (X["region-pixel-count"] == 9).all()
    assert X["exred-mean"].min() == -49.666668
    np.testing.assert_array_equal(X.iloc[0, :4], [218.0, 178.0, 9.0, 0.11111111])


def test_shuttle_values():
    X, y = datasets.load_shuttle(return_X_y=True)
    assert X.min() == -26739 and X.max() == 15164
    np.testing.assert_array_equal(X, X.round())
    np.testing.assert_array_equal(X[0], [55, 0, 81, 0, -6, 11, 25, 88, 64])
    assert y[0] == "4"


def test_waveform_is_what_its_description_says():
    bunch = datasets.make_waveform(60000, random_state=0, return_X_y=False)
    peaks = bunch.waves.argmax(axis=1) + 1  # features are counted from 1
    assert list(peaks) == [7, 15, 11] and (bunch.waves.max(axis=1) == 6).all()
    assert list(bunch.target_names) == [0, 1, 2]
    for label, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        X = bunch.data[bunch.target == label]
        assert len(X) == pytest.approx(20000, rel=0.03)
        a, b = bunch.waves[first], bunch.waves[second]
        np.testing.assert_allclose(X.mean(axis=0), (a + b) / 2, atol=0.06)
        # A uniform share has variance 1/12, and what differs goes along a − b.
        covariance = np.eye(21) + np.outer(a - b, a - b) / 12
        np.testing.assert_allclose(np.cov(X.T), covariance, atol=0.15)


def test_waveform_forms_agree():
    X, y = datasets.make_waveform(50, random_state=3)
    bunch = datasets.make_waveform(50, random_state=3, return_X_y=False)
    assert X.shape == (50, 21) and X.dtype == np.float64
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    assert len(bunch.feature_names) == 21 and "Breiman" in bunch.DESCR
    assert datasets.make_waveform()[0].shape == (5000, 21)
    assert not np.array_equal(X, datasets.make_waveform(50, random_state=4)[0])


@pytest.mark.parametrize("n_samples", [0, 2.5, True, "many"])
def test_waveform_refuses(n_samples):
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1; found"):
        datasets.make_waveform(n_samples)


def test_waveform_as_frame():
    bunch = datasets.make_waveform(50, random_state=3, return_X_y=False)
    assert bunch.frame is None
    framed = datasets.make_waveform(50, random_state=3, return_X_y=False, as_frame=True)
    assert framed.frame.shape == (50, 22)
    np.testing.assert_array_equal(framed.data, bunch.data)
    np.testing.assert_array_equal(framed.target, bunch.target)
    X, y = datasets.make_waveform(50, random_state=3, as_frame=True)
    pd.testing.assert_frame_equal(X, framed.data)
    pd.testing.assert_series_equal(y, framed.target)


# Data in a folder. The files are made here: none of their rows is of the real data.

OPENML_COLUMNS = [f"V{i}" for i in range(1, 22)]
JOKES = [f"j{i}" for i in range(1, 101)]
TEAMS = ["Bären", "Elche", "Füchse", "Wölfe"]


@pytest.fixture(autouse=True)
def no_folder_and_no_network(monkeypatch):
    monkeypatch.delenv("SEMINMF_DATA", raising=False)

    def refuse(**_):
        raise AssertionError("a test must not go online")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)


def waveform_like(labels=(0, 1, 2), counts=(1657, 1647, 1696), n_features=21):
    random = np.random.RandomState(0)
    X = random.normal(size=(sum(counts), n_features)).round(2)
    return X, random.permutation(np.repeat(labels, counts))


def waveform_file(X, y):
    return pd.DataFrame(X, columns=OPENML_COLUMNS[: X.shape[1]]).assign(label=y)


def season(year, teams=TEAMS):
    random = np.random.RandomState(year)
    rows = [
        (year, number, f"{year}-09-01", home, away, *random.randint(6, size=2))
        for number, (home, away) in enumerate(permutations(teams, 2), start=1)
    ]
    columns = ["year", "round", "date", "home", "away", "home_goals", "away_goals"]
    return pd.DataFrame(rows, columns=columns)


def ratings(n_users=30):
    random = np.random.RandomState(0)
    X = random.uniform(-10, 10, size=(n_users, len(JOKES))).round(2)
    X[random.uniform(size=X.shape) < 0.3] = np.nan
    X[0, :3] = [-10, 0, 10]
    return pd.DataFrame(X, columns=JOKES).assign(user=[f"u{i}" for i in range(n_users)])


def write(folder, name, frame, ending=".csv", **options):
    frame.to_csv(folder / f"{name}{ending}", index=False, **options)


IN_A_FOLDER = [
    pytest.param(datasets.fetch_waveform, "waveform21", waveform_file(*waveform_like()), id="wave"),
    pytest.param(datasets.load_bundesliga, "bundesliga", season(2030), id="bundesliga"),
    pytest.param(datasets.load_jester, "jester5k", ratings(), id="jester"),
]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize(("loader", "name", "content"), IN_A_FOLDER)
def test_folder_by_argument_and_by_variable(loader, name, content, ending, tmp_path, monkeypatch):
    write(tmp_path, name, content, ending)
    by_argument = loader(data_home=str(tmp_path))
    monkeypatch.setenv("SEMINMF_DATA", str(tmp_path))
    by_variable = loader()
    np.testing.assert_array_equal(by_argument.data, by_variable.data)
    assert by_argument.data.dtype == np.float64 and by_argument.frame is None
    assert "Origin" in by_argument.DESCR and "Licence" in by_argument.DESCR
    framed = loader(data_home=tmp_path, as_frame=True)
    assert isinstance(framed.data, pd.DataFrame)
    assert list(framed.data.columns) == by_argument.feature_names
    np.testing.assert_array_equal(framed.data, by_argument.data)


@pytest.mark.parametrize(("loader", "name", "content"), IN_A_FOLDER)
def test_data_home_wins_over_the_variable(loader, name, content, tmp_path, monkeypatch):
    named, other = tmp_path / "named", tmp_path / "other"
    for folder in (named, other):
        folder.mkdir()
    write(named, name, content)
    (other / f"{name}.csv").write_text("not the file that was asked for")
    monkeypatch.setenv("SEMINMF_DATA", str(other))
    assert loader(data_home=named).data.size
    with pytest.raises(ValueError, match="must have a header and at least one row; found 1 row"):
        loader()


@pytest.mark.parametrize(("loader", "name", "content"), IN_A_FOLDER)
def test_spreadsheets_and_r_write_files_that_can_be_read(loader, name, content, tmp_path):
    write(tmp_path, name, content, ".csv.gz")
    expected = loader(data_home=tmp_path).data
    (tmp_path / f"{name}.csv.gz").unlink()
    write(tmp_path, name, content, encoding="utf-8-sig", na_rep="NA", lineterminator="\r\n\r\n")
    np.testing.assert_array_equal(loader(data_home=tmp_path).data, expected)


@pytest.mark.parametrize(("loader", "name", "content"), IN_A_FOLDER)
def test_files_that_cannot_be_read(loader, name, content, tmp_path):
    packed, plain = tmp_path / f"{name}.csv.gz", tmp_path / f"{name}.csv"
    for broken in (b"no gzip", gzip.compress(b"a,b\n1,2\n")[:-9], gzip.compress(b"a\n\xe4\n")):
        packed.write_bytes(broken)
        with pytest.raises(ValueError, match=f"{name}.csv.gz must be a CSV file in UTF-8; found"):
            loader(data_home=tmp_path)
    packed.unlink()
    plain.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match=r"must have 2 fields in each row.*; found 1 in row 2"):
        loader(data_home=tmp_path)


@pytest.mark.parametrize(
    ("loader", "files", "source", "columns"),
    [
        (
            datasets.load_bundesliga,
            "bundesliga.csv.gz or bundesliga.csv",
            "Bundesliga of the R package vcd",
            "year, round, date, home, away, home_goals, away_goals",
        ),
        (
            datasets.load_jester,
            "jester5k.csv.gz or jester5k.csv",
            "Jester5k of the R package recommenderlab",
            "ratings from -10 to 10 for each joke (empty for gaps) and the column user last",
        ),
    ],
)
def test_missing_files_say_where_and_how(loader, files, source, columns, tmp_path):
    with pytest.raises(FileNotFoundError) as found:
        loader(data_home=tmp_path)
    for part in (files, f"in the folder {tmp_path}", source, columns, "SEMINMF_DATA"):
        assert part in str(found.value)
    with pytest.raises(FileNotFoundError, match=r"neither data_home nor .* SEMINMF_DATA names a"):
        loader()


def test_waveform_is_the_same_from_folder_and_openml(tmp_path, monkeypatch):
    X, y = waveform_like()
    write(tmp_path, "waveform21", waveform_file(X, y))
    from_folder = datasets.fetch_waveform(data_home=tmp_path)
    np.testing.assert_array_equal(from_folder.data, X)
    np.testing.assert_array_equal(from_folder.target, y)
    assert list(from_folder.target_names) == [0, 1, 2]
    generated = datasets.make_waveform(3, return_X_y=False)
    assert from_folder.feature_names == generated.feature_names
    assert from_folder.target.dtype.kind == generated.target.dtype.kind == "i"

    for labels in (y, y.astype(str), y.astype(str).astype(object), y.astype(float), y + 1):
        asked = {}

        def fetch(labels=labels, asked=asked, **options):
            asked.update(options)
            return X, labels

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        empty = tmp_path / "empty"
        fetched = datasets.fetch_waveform(data_home=empty)
        assert asked["data_id"] == 4551 and asked["data_home"] == empty
        np.testing.assert_array_equal(fetched.data, X)
        np.testing.assert_array_equal(fetched.target, y)
        assert fetched.target.dtype == from_folder.target.dtype
        assert fetched.feature_names == from_folder.feature_names


def test_fetched_waveform_forms_agree(tmp_path):
    write(tmp_path, "waveform21", waveform_file(*waveform_like()))
    bunch = datasets.fetch_waveform(data_home=tmp_path, as_frame=True)
    assert bunch.frame.shape == (5000, 22)
    X, y = datasets.fetch_waveform(data_home=tmp_path, return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    X_frame, y_frame = datasets.fetch_waveform(data_home=tmp_path, return_X_y=True, as_frame=True)
    pd.testing.assert_frame_equal(X_frame, bunch.data)
    pd.testing.assert_series_equal(y_frame, bunch.target)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (waveform_like(n_features=20), r"must have the shape \(5000, 21\) .*; found \(5000, 20\)"),
        (waveform_like(counts=(5, 5, 5)), r"must have the shape \(5000, 21\) .*; found \(15, 21\)"),
        (
            waveform_like(labels=(2, 1, 0)),
            r"must have the class counts \[1657, 1647, 1696\]; found \[1696, 1647, 1657\]",
        ),
        ((waveform_like()[0], np.arange(5000)), r"must have .*; found 5000 classes"),
    ],
)
def test_waveform_that_is_not_the_original(content, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: content)
    with pytest.raises(ValueError, match=f"OpenML's data set 4551 {sentence}"):
        datasets.fetch_waveform()
    write(tmp_path, "waveform21", waveform_file(*content))
    with pytest.raises(ValueError, match=f"waveform21.csv {sentence}"):
        datasets.fetch_waveform(data_home=tmp_path)


def test_waveform_from_openml_without_labels(monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: (waveform_like()[0], None))
    with pytest.raises(ValueError, match=r"must have the class counts .*; found \[1\]"):
        datasets.fetch_waveform()


def test_waveform_with_text_among_its_features(tmp_path):
    X, y = waveform_like()
    write(tmp_path, "waveform21", waveform_file(X, y).assign(V3="high"))
    with pytest.raises(ValueError, match=r"numbers in all columns but the last; .*'high'"):
        datasets.fetch_waveform(data_home=tmp_path)


@pytest.mark.parametrize(
    "error", [URLError("no route"), TimeoutError("too slow"), IncompleteRead(b"half")]
)
def test_waveform_offline(error, tmp_path, monkeypatch):
    def fail(**_):
        raise error

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)
    with pytest.raises(OSError, match="the download from OpenML failed") as raised:
        datasets.fetch_waveform(data_home=tmp_path)
    assert raised.value.__cause__ is error
    assert str(error) in str(raised.value)
    assert_says_what_to_do(str(raised.value))
    assert f"waveform21.csv.gz or waveform21.csv was not found in the folder {tmp_path}" in str(
        raised.value
    )


def test_waveform_is_not_downloaded_if_not_wanted():
    with pytest.raises(OSError, match="download_if_missing is False") as raised:
        datasets.fetch_waveform(download_if_missing=False)
    assert_says_what_to_do(str(raised.value))


def assert_says_what_to_do(sentence):
    for way in ("connect to the internet", "data_home", "SEMINMF_DATA", "make_waveform"):
        assert way in sentence
    assert sentence.endswith(".") and ". " not in sentence and "\n" not in sentence


def test_bundesliga_is_teams_by_teams(tmp_path):
    matches = season(2030).iloc[:-1]  # the last match was not played
    write(tmp_path, "bundesliga", matches.sample(frac=1, random_state=0))
    league = datasets.load_bundesliga(data_home=tmp_path)
    assert league.sample_names == league.feature_names == TEAMS
    played = np.isfinite(league.data)
    assert played.sum() == len(matches)
    assert not played.diagonal().any()
    assert not played[TEAMS.index("Wölfe"), TEAMS.index("Füchse")]
    np.testing.assert_array_equal(np.isfinite(league.rounds), played)
    for match in matches.itertuples():
        cell = TEAMS.index(match.home), TEAMS.index(match.away)
        assert league.data[cell] == match.home_goals - match.away_goals
        assert league.rounds[cell] == match.round


def test_bundesliga_as_frame(tmp_path):
    matches = season(2030).astype({"date": object})
    matches.loc[3, "date"] = None
    write(tmp_path, "bundesliga", pd.concat([season(2029), matches]))
    league = datasets.load_bundesliga(data_home=tmp_path, as_frame=True)
    for frame in (league.data, league.rounds):
        assert list(frame.index) == list(frame.columns) == TEAMS
    assert len(league.frame) == len(matches)
    assert league.frame["date"].isna().sum() == 1
    for match in league.frame.itertuples():
        assert match.goal_diff == match.home_goals - match.away_goals
        assert match.goal_diff == league.data.loc[match.home, match.away]


def test_bundesliga_seasons(tmp_path):
    newcomers = [*TEAMS[1:], "Adler"]
    years = pd.concat([season(2030, newcomers), season(2028), season(2029)])
    write(tmp_path, "bundesliga", years)
    last = datasets.load_bundesliga(data_home=tmp_path)
    assert list(last.seasons) == [2028, 2029, 2030]
    assert last.season == 2030 and last.sample_names == sorted(newcomers)
    first = datasets.load_bundesliga(data_home=tmp_path, season=2028)
    assert first.season == 2028 and first.sample_names == TEAMS
    for wrong in (2027, "2028", True):
        with pytest.raises(ValueError, match=f"season must be .* 2028 to 2030; found {wrong!r}"):
            datasets.load_bundesliga(data_home=tmp_path, season=wrong)


def test_bundesliga_needs_no_other_columns_nor_an_order(tmp_path):
    write(tmp_path, "bundesliga", season(2030))
    expected = datasets.load_bundesliga(data_home=tmp_path).data
    write(tmp_path, "bundesliga", season(2030).iloc[:, ::-1].assign(referee="x"))
    np.testing.assert_array_equal(datasets.load_bundesliga(data_home=tmp_path).data, expected)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            season(2030).drop(columns=["round", "away"]),
            "must have the columns year, round, .*; it lacks round, away",
        ),
        (
            season(2030).assign(home_goals="won"),
            "must have whole numbers in the column home_goals; .*'won'",
        ),
        (
            pd.concat([season(2030), season(2030)[4:5]]),
            "must have each match of a season once; found 2030 Elche Füchse 2 times",
        ),
    ],
)
def test_bundesliga_refuses(content, sentence, tmp_path):
    write(tmp_path, "bundesliga", content)
    with pytest.raises(ValueError, match=f"bundesliga.csv {sentence}"):
        datasets.load_bundesliga(data_home=tmp_path)


@pytest.mark.parametrize("n_users", [1, 30])
def test_jester_keeps_gaps_and_zeros(n_users, tmp_path):
    content = ratings(n_users)
    write(tmp_path, "jester5k", content)
    jester = datasets.load_jester(data_home=tmp_path)
    np.testing.assert_array_equal(jester.data, content[JOKES])
    assert jester.data[0, 1] == 0 and np.isnan(jester.data).any()
    assert jester.feature_names == JOKES
    assert jester.sample_names == content["user"].tolist()
    framed = datasets.load_jester(data_home=tmp_path, as_frame=True)
    assert list(framed.data.index) == jester.sample_names


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (ratings()[JOKES], "found the last columns j98, j99, j100"),
        (ratings()[["user", *JOKES]].assign(user=1), "found the last columns j98, j99, j100"),
        (ratings()[["user"]], "found the last columns user"),
        (ratings().fillna(99.0), "found the rating 99"),  # a mark that other versions have for gaps
    ],
)
def test_jester_refuses(content, sentence, tmp_path):
    write(tmp_path, "jester5k", content)
    with pytest.raises(ValueError, match="a column of ratings from -10 to 10 for") as raised:
        datasets.load_jester(data_home=tmp_path)
    assert sentence in str(raised.value)


def test_installed_package_has_the_data():
    """The tests run on the source tree; this looks at what the wheel brought."""
    try:
        installed = {str(path) for path in files("seminmf") or []}
    except PackageNotFoundError:
        pytest.skip("seminmf is not installed")
    if "seminmf/__init__.py" not in installed:
        pytest.skip("seminmf is installed in editable mode")
    assert "seminmf/py.typed" in installed
    for name in ("ionosphere", "segment", "shuttle"):
        assert f"seminmf/datasets/data/{name}.csv.gz" in installed
    assert "seminmf/datasets/data/README.md" in installed


def test_a_quote_that_is_never_closed_is_a_sentence(tmp_path):
    (tmp_path / "jester5k.csv").write_text('j1,user\n"1,' + "x" * 200_000)
    with pytest.raises(ValueError, match=r"jester5k\.csv must be a table in CSV format"):
        datasets.load_jester(data_home=tmp_path)
