"""The experiment of hidden cells: who fills them, how well, and with what it may see."""

import json
import pickle
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from leagues import league
from rich.console import Console

from seminmf.experiments import Settings, _hidden, missing, reproduce
from seminmf.experiments._imputers import (
    Fill,
    Method,
    column_means,
    fill_by_soft_svd,
    fill_residuals,
    fill_with_means,
    fill_within,
    row_and_column_means,
    soft_svd,
)
from seminmf.experiments._runs import run_all

SMALL = {"shares": [0.5], "size": 14, "users": 30}


def gappy_matrix(seed=0, share=0.3, shape=(12, 9)):
    random = np.random.RandomState(seed)
    X = random.normal(size=(shape[0], 2)) @ random.normal(size=(2, shape[1]))
    X += 0.1 * random.normal(size=shape)
    return np.where(random.uniform(size=shape) < share, np.nan, X)


@pytest.fixture(scope="module")
def quick():
    """Few settings to choose from."""
    few = {
        name: task._replace(methods={key: shortened(each) for key, each in task.methods.items()})
        for name, task in _hidden.TASKS.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_hidden, "TASKS", few)
        yield


def shortened(method):
    return method._replace(choices={name: values[:1] for name, values in method.choices.items()})


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """A folder with ratings by 40 users of 12 jokes."""
    random = np.random.RandomState(0)
    values = random.normal(size=(40, 2)) @ random.normal(size=(2, 12)) * 3
    values = np.clip(values + random.normal(size=values.shape), -10, 10).round(2)
    values[random.uniform(size=values.shape) < 0.2] = np.nan
    lines = [",".join([*(f"j{n}" for n in range(12)), "user"])]
    for number, row in enumerate(values):
        lines.append(",".join(["" if np.isnan(x) else str(x) for x in row] + [f"u{number}"]))
    folder = tmp_path_factory.mktemp("ratings")
    (folder / "jester5k.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def experiment(quick, ratings, tmp_path_factory):
    """Findings and folder of the experiment, done once."""
    folder = tmp_path_factory.mktemp("missing")
    settings = Settings(folder, 1, data_home=ratings, options=SMALL)
    return reproduce(_hidden, settings, Console(file=StringIO(), width=300)), folder


# --- soft SVD -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("threshold", [0.1, 1.0, 3.0])
def test_the_objective_of_soft_svd_never_rises(seed, threshold):
    gappy = gappy_matrix(seed)
    Z, objectives = soft_svd(gappy, threshold)
    assert len(objectives) > 2
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    nuclear = np.linalg.norm(Z, "nuc")
    assert objectives[-1] == pytest.approx(np.nansum((gappy - Z) ** 2) / 2 + threshold * nuclear)


def test_soft_svd_ends_at_the_optimum():
    """X − Z on the seen cells is threshold × a subgradient of the sum of singular values."""
    gappy, threshold = gappy_matrix(1), 0.5
    Z = soft_svd(gappy, threshold).values
    left, sizes, right = np.linalg.svd(Z, full_matrices=False)
    kept = sizes > 1e-9
    sign = left[:, kept] @ right[kept]
    slope = np.where(np.isnan(gappy), 0.0, gappy - Z) / threshold
    assert 0 < kept.sum() < len(sizes)
    np.testing.assert_allclose(
        left[:, kept].T @ slope @ right[kept].T, np.eye(kept.sum()), atol=1e-2
    )
    assert np.linalg.norm(slope - sign, 2) <= 1.01


def test_without_gaps_soft_svd_reduces_singular_values():
    X = gappy_matrix(share=0.0)
    left, sizes, right = np.linalg.svd(X, full_matrices=False)
    expected = (left * np.maximum(sizes - 0.7, 0)) @ right
    np.testing.assert_allclose(soft_svd(X, 0.7).values, expected, atol=1e-9)


def test_a_huge_threshold_keeps_nothing():
    gappy = gappy_matrix()
    assert not soft_svd(gappy, 1e3).values.any()
    assert not fill_by_soft_svd(gappy, seed=0, intervals=False, threshold=1.01).values.any()


def test_the_path_of_thresholds_ends_at_the_one_asked_for():
    gappy = gappy_matrix(2)
    largest = np.linalg.norm(np.nan_to_num(gappy), 2)
    filled = fill_by_soft_svd(gappy, seed=0, intervals=False, threshold=0.06).values
    np.testing.assert_allclose(filled, soft_svd(gappy, 0.06 * largest).values, atol=0.02)


# --- means --------------------------------------------------------------------------------------


def test_means_of_columns_and_rows():
    gappy = np.array([[1.0, np.nan, np.nan], [3.0, 7.0, np.nan]])
    columns = column_means(gappy)
    np.testing.assert_allclose(columns, [[2, 7, 11 / 3]] * 2)
    # Deviations −1, and 1 and 0; each row counts as if it had three cells more.
    np.testing.assert_allclose(row_and_column_means(gappy) - columns, [[-1 / 4] * 3, [1 / 5] * 3])


def test_intervals_of_means_hold_as_often_as_normal_cells():
    X = np.random.RandomState(0).normal([0, 5], [1, 3], size=(20_000, 2))
    fill = fill_with_means(X, 0, True, means=column_means)
    inside = (fill.lower <= X) & (X <= fill.upper)
    np.testing.assert_allclose(inside.mean(axis=0), 0.9, atol=0.01)


def test_residuals_come_back_with_their_means():
    gappy = gappy_matrix()

    def constant(residuals, seed, intervals):
        assert np.nanmean(residuals) == pytest.approx(0, abs=0.05)
        return Fill(np.full(residuals.shape, 1.0), np.zeros(residuals.shape), None)

    fill = fill_residuals(constant, gappy, seed=0, intervals=True)
    np.testing.assert_allclose(fill.values, row_and_column_means(gappy) + 1)
    np.testing.assert_allclose(fill.lower, row_and_column_means(gappy))
    assert fill.upper is None


def test_fills_are_cut_to_their_bounds_and_intervals_are_not():
    def wild(gappy, **options):
        values = np.array([[-7.0, 0.5], [3.0, 99.0]])
        return Fill(values, values - 1, values + 1)

    fill = fill_within((-1, 3), wild, gappy_matrix(), seed=0)
    np.testing.assert_array_equal(fill.values, [[-1, 0.5], [3, 3]])
    assert fill.upper.max() == 100


# --- choices and runs ---------------------------------------------------------------------------


def test_the_best_of_all_settings_is_chosen():
    gappy = np.where(np.isnan(gappy_matrix()), np.nan, 5.0)
    tried = []

    def constant(seen, seed, intervals, a, b):
        tried.append((a, b, np.isnan(seen).sum() - np.isnan(gappy).sum()))
        return Fill(np.full(seen.shape, float(a + b)))

    chosen = Method(constant, {"a": (1, 2, 3), "b": (0, 3)}).choose(gappy, seed=0)
    assert chosen == {"a": 2, "b": 3}
    tenth = round(0.1 * np.sum(~np.isnan(gappy)))
    assert sorted(tried) == [(a, b, tenth) for a in (1, 2, 3) for b in (0, 3)]
    assert Method(constant).choose(gappy, seed=0) == {}


@pytest.mark.parametrize("task", _hidden.TASKS)
def test_hidden_values_do_not_reach_a_method(quick, ratings, monkeypatch, task):
    key = {"task": task, "size": 14, "share": 0.5, "number": 0, "seed": 0, "data_home": ratings}
    X, hidden = _hidden.problem(**key)
    fills = []

    def keep(fill, X, hidden):
        fills.append(fill)
        return {}

    monkeypatch.setattr(_hidden, "measure", keep)
    for method in _hidden.TASKS[task].methods:
        chosen = []
        for data in (X, np.where(hidden, 99.0, X)):
            monkeypatch.setattr(_hidden, "problem", lambda *_, data=data, **__: (data, hidden))
            chosen.append(_hidden.fill_hidden(method=method, **key)["chosen"])
        assert chosen[0] == chosen[1]
        first, second = fills[-2:]
        for part, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(part, other)
        assert np.isfinite(first.values).all()


def test_all_methods_have_the_same_cells_hidden(ratings):
    key = {"task": "ratings", "size": 25, "seed": 0, "data_home": ratings}
    X, hidden = _hidden.problem(share=0.5, number=0, **key)
    assert X.shape == (25, 12)
    assert hidden.sum() == round(0.5 * np.sum(~np.isnan(X)))
    assert not np.isnan(X[hidden]).any()
    np.testing.assert_array_equal(hidden, _hidden.problem(share=0.5, number=0, **key)[1])
    assert (hidden != _hidden.problem(share=0.5, number=1, **key)[1]).any()


def test_the_image_is_signed_and_whole():
    image = _hidden.load_image(106, 0, None)
    assert image.shape == (106, 160)
    assert (image == np.round(image)).all()
    assert -128 <= image.min() < -50 and 50 < image.max() <= 127
    # A block of four by four pixels.
    from sklearn.datasets import load_sample_image

    red, green, blue = load_sample_image("china.jpg")[4:8, 8:12].mean(axis=(0, 1))
    assert image[1, 2] == round(0.299 * red + 0.587 * green + 0.114 * blue - 128)


def test_measures_count_hidden_cells_only():
    random = np.random.RandomState(0)
    X, values = random.normal(size=(2, 30, 20))
    hidden = random.uniform(size=X.shape) < 0.4
    half = random.uniform(0, 3, size=X.shape)
    found = _hidden.measure(Fill(values, values - half, values + half), X, hidden)
    cells = list(zip(X[hidden], values[hidden], half[hidden], strict=True))
    errors = [abs(x - value) for x, value, _ in cells]
    n_inside = sum(abs(x - value) <= width for x, value, width in cells)
    assert found["coverage"] == pytest.approx(n_inside / len(cells))
    assert found["width"] == pytest.approx(2 * sum(width for *_, width in cells) / len(cells))
    assert found["mae"] == pytest.approx(sum(errors) / len(cells))
    assert found["rmse"] ** 2 == pytest.approx(sum(e * e for e in errors) / len(cells))
    assert _hidden.measure(Fill(values), X, hidden)["coverage"] is None


def test_all_is_found_and_written(experiment):
    found, folder = experiment
    kinds = ("rmse", "mae", "coverage", "seconds")
    names = [f"{task}_{kind}" for task in _hidden.TASKS for kind in kinds]
    assert [table.name for table in found.tables] == names
    for table in found.tables:
        task = _hidden.TASKS[table.name.split("_")[0]]
        assert [row[0] for row in table.rows] == list(task.methods)
        assert table.columns[1:] == ["50%"]
    for name in ("inpainting", "errors", "coverage"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(found.remarks) == 1


def test_runs_say_what_was_chosen_and_measured(experiment):
    runs = pd.read_csv(experiment[1] / "runs.csv")
    assert len(runs) == sum(len(task.methods) for task in _hidden.TASKS.values())
    with_intervals = set(runs["method"][runs["coverage"].notna()])
    assert all("means" in method or "Bayesian" in method for method in with_intervals)
    assert with_intervals
    assert (runs["seconds"] > 0).all() and (runs["mae"] <= runs["rmse"]).all()
    for run in runs.itertuples():
        choices = _hidden.TASKS[run.task].methods[run.method].choices
        assert json.loads(run.chosen) == {name: values[0] for name, values in choices.items()}


def test_runs_can_go_to_other_processes(ratings, tmp_path):
    settings = Settings(tmp_path, 2, data_home=ratings, options=SMALL)
    for (run,) in _hidden.plan(settings):
        again = pickle.loads(pickle.dumps(run.work))
        assert again.keywords | {"rows": run.key["rows"]} == run.key | {"data_home": ratings}


def test_without_jester_the_image_is_left_and_a_remark(quick, tmp_path):
    settings = Settings(tmp_path, 1, data_home=tmp_path, options=SMALL)
    runs = run_all(_hidden.plan(settings), tmp_path / "runs.jsonl", jobs=1)
    assert set(runs["task"]) == {"image"}
    found = _hidden.findings(runs, settings)
    assert len(found.tables) == 4
    with pytest.raises(FileNotFoundError) as error:
        _hidden.load_jester(data_home=tmp_path)
    assert str(error.value) in found.remarks[-1]


@pytest.mark.slow
def test_football_is_there_if_its_data_are(quick, ratings, tmp_path):
    """Without them there is a remark; with them, one more table and one more picture."""
    settings = Settings(tmp_path, 1, data_home=ratings, options=SMALL | {"seasons": 2})
    runs = run_all(missing.plan(settings), tmp_path / "runs.jsonl", jobs=1)
    found = missing.findings(runs, settings)
    assert "football" not in found.pictures
    assert found.remarks[-1].startswith("Without football: ") and "bundesliga" in found.remarks[-1]

    league(2).to_csv(ratings / "bundesliga.csv", index=False)
    try:
        runs = run_all(missing.plan(settings), tmp_path / "runs.jsonl", jobs=1)
        more = missing.findings(runs, settings)
    finally:
        (ratings / "bundesliga.csv").unlink()
    assert [table.name for table in more.tables] == [*(t.name for t in found.tables), "football"]
    assert set(more.pictures) == {*found.pictures, "football"}
