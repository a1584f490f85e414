"""The online experiment, shortened."""

import numpy as np
import pytest

from seminmf.experiments import Settings, online
from seminmf.experiments._runs import run_all

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def short(monkeypatch):
    """Streams of few and small matrices, learned in pieces of two."""
    monkeypatch.setattr(online, "PIECE", 2)
    monkeypatch.setattr(online, "LAST", 3)
    return {"matrices": 5, "samples": 60}


def found_in(folder, options, matrices=5):
    settings = Settings(folder, 1, options=options | {"matrices": matrices})
    folder.mkdir(exist_ok=True)
    return run_all(online.plan(settings), folder / "runs", 1), settings


def streams(found):
    return {
        (rule, name): np.concatenate(part[name].to_list())
        for rule, part in found.sort_values("start").groupby("rule")
        for name in ("errors", "mse_m", "mse_v")
        if not part[name].isna().any()
    }


def test_pieces_make_the_stream(short, tmp_path, monkeypatch):
    """A stream that was stopped and goes on, further, is the same as one in one piece."""
    found_in(tmp_path / "pieces", short, matrices=4)
    pieces, _ = found_in(tmp_path / "pieces", short)
    monkeypatch.setattr(online, "PIECE", 50)
    whole, _ = found_in(tmp_path / "whole", short)
    first, second = streams(pieces), streams(whole)
    assert set(first) == set(second) and len(first) == 8
    for name, values in second.items():
        np.testing.assert_array_equal(first[name], values, err_msg=str(name))
        assert len(values) == (3 if name[0] == online.TRUE else 5)


def test_a_shorter_stream_after_a_longer_one(short, tmp_path):
    """Its last piece starts where no learner is saved any more: it is learned again."""
    long, _ = found_in(tmp_path, short, matrices=8)
    found, _ = found_in(tmp_path, short, matrices=3)
    for name, values in streams(found).items():
        if name[0] != online.TRUE:
            np.testing.assert_array_equal(values, streams(long)[name][:3])


def test_few_files_are_left(short, tmp_path):
    found_in(tmp_path, short)
    assert len(list(tmp_path.glob("*.safetensors"))) <= 2 * len(online.RULES)


def test_tables_and_picture(short, tmp_path):
    findings = online.findings(*found_in(tmp_path, short))
    summary, shapes, fits = findings.tables
    assert summary.rows[0] == ["the paper's runs, 1300 matrices", "2 of 5"]
    assert len(summary.rows) == 3 and len(shapes.rows) == len(fits.rows) == 2
    assert all(len(row) == len(t.columns) for t in findings.tables for row in t.rows)
    assert list(findings.pictures) == ["online"]


def test_what_is_good():
    start = online.shape_error(online.STREAM.draw(0), np.ones(1))

    def end(errors, mse):
        own = {"errors": start * np.array(errors), "seconds": [1.0], "mse_v": np.ones(2)}
        curves = {
            ("seminmf", 0): own | {"mse_m": np.array(mse)},
            (online.TRUE, 0): {"mse_m": np.ones(2), "mse_v": np.ones(2)},
        }
        return online._end(curves, "seminmf", 0, start)

    assert end([0.5, 0.2, 0.05, 0.01], [9.0, 9.0, 1.1, 0.9])["good"]
    assert end([0.5, 0.2, 0.05, 0.01], [9.0, 9.0, 1.1, 0.9])["settled"] == 2
    assert not end([0.5, 0.2, 0.05, 0.2], [1.0, 1.0, 1.0, 1.0])["good"]
    assert not end([0.5, 0.2, 0.05, 0.01], [1.0, 1.0, 1.3, 1.3])["good"]


def test_number_of_matrices(tmp_path):
    number = online.number_of_matrices
    paper, fewer = (number(Settings(tmp_path, runs)) for runs in (online.DEFAULT_RUNS, 1))
    assert paper == online.N_MATRICES > fewer > 0
    assert number(Settings(tmp_path, 3, options={"matrices": 7})) == 7


def test_curves_are_smoothed_over_what_came_before():
    values = np.arange(100.0)
    smoothed = online.smooth(values)
    for place in (0, 9, 60, 99):
        seen = values[max(place + 1 - online.WINDOW, 0) : place + 1]
        assert smoothed[place] == pytest.approx(seen.mean())


def test_source_errors_do_not_depend_on_the_order():
    truth = online.STREAM.draw(0)
    X, atoms, activations = truth.matrix(0, 0, 50)
    model = online.counts(**truth.parameters(), max_iter=5, tol=0.0).fit(X)
    straight = online.source_errors(atoms, activations, model)
    swapped = online.source_errors(atoms[:, ::-1], activations[:, ::-1], model)
    np.testing.assert_allclose(straight, swapped)
    assert online.shape_error(truth, truth.atom_shape[:, ::-1]) == 0
