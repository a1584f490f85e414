"""The experiment of Sk1 against Sk∞: who finds the activations, and how fast."""

import math
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from seminmf.experiments import Settings, likelihoods, reproduce
from seminmf.experiments._runs import run_all
from seminmf.experiments.likelihoods import LIKELIHOODS, SOLVERS, Problem


@pytest.fixture
def small(monkeypatch):
    """Few samples, which take fewer iterations."""
    monkeypatch.setattr(likelihoods, "N_SAMPLES", 15)
    limit_iterations(monkeypatch, 3000, 300, 300, 30)


@pytest.fixture
def quick(monkeypatch, small):
    """So few iterations that EM does not arrive."""
    monkeypatch.setattr(likelihoods, "PUBLISHED_ITERATIONS", 100)
    limit_iterations(monkeypatch, 100, 60, 60, 20)


def limit_iterations(monkeypatch, *most):
    limited = [
        solver._replace(max_iter=n) for solver, n in zip(SOLVERS.values(), most, strict=True)
    ]
    monkeypatch.setattr(likelihoods, "SOLVERS", dict(zip(SOLVERS, limited, strict=True)))


def findings(folder, runs=1, **options):
    settings = Settings(out=folder, runs=runs, options=options)
    found = run_all(likelihoods.plan(settings), folder / "runs.jsonl", jobs=1)
    return likelihoods.findings(found, settings)


def table(found, name):
    return next(table for table in found.tables if table.name == name)


@pytest.mark.parametrize("seed", range(3))
def test_problems_are_the_papers(seed):
    problem = Problem.draw(seed, noise=0.0)
    assert problem.X.shape == (100, 10) and problem.components.shape == (3, 10)
    np.testing.assert_allclose(np.abs(problem.components).sum(axis=1), 1)
    assert (problem.components < 0).any() and (problem.components > 0).any()
    assert (problem.activations > 0).all()
    np.testing.assert_allclose(problem.X, problem.activations @ problem.components)


def test_noise_changes_the_data_only():
    clean, noisy = Problem.draw(0, 0.0), Problem.draw(0, 1e-4)
    for before, after in zip(clean[1:], noisy[1:], strict=True):
        np.testing.assert_array_equal(before, after)
    assert np.std(noisy.X - clean.X) == pytest.approx(1e-4, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_real_finds_the_activations_and_integer_is_biased(small, seed):
    found = {
        likelihood: likelihoods.estimate(seed, 0.0, likelihood, curves=False)
        for likelihood in LIKELIHOODS
    }
    assert found["real"]["mse"] < 1e-6
    assert 1e-3 < found["integer"]["mse"] < 1


def test_errors_are_those_of_the_activations():
    problem = Problem.draw(0, 0.0)
    model = problem.fit("integer", SOLVERS["Newton"]._replace(max_iter=5))
    differences = (model.activations_ - problem.activations).ravel()
    assert problem.error(model) == pytest.approx(sum(d * d for d in differences) / 300)
    assert model.n_iter_ == 5
    np.testing.assert_allclose(model.components_, problem.components)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_all_solvers_reach_one_optimum(small, likelihood):
    found = likelihoods.race(0, 0.0, likelihood, curves=True)
    for name in SOLVERS:
        assert 0 < found[f"{name} near"] < found[f"{name} there"]
        assert found[f"{name} seconds"] > 0
        left = found[f"{name} left"]
        assert left[0] == 1 and left[-1] <= likelihoods.THERE
        assert len(left) == len(found[f"{name} steps"])
    assert found["Newton there"] < found["SQUAREM there"] < found["EM there"]


def test_ratios_are_of_consecutive_objectives(small):
    found = likelihoods.estimate(0, 0.0, "integer", curves=True)
    plain = SOLVERS["EM"]._replace(max_iter=likelihoods.PUBLISHED_ITERATIONS)
    objectives = Problem.draw(0, 0.0).fit("integer", plain).objectives_
    for step, ratio in zip(found["steps"], found["ratios"], strict=True):
        assert ratio == objectives[step] / objectives[step - 1]


def test_first_below():
    values = np.array([3.0, 2.0, 1.0, 2.0])
    assert likelihoods.first_below(values, 2.0) == 1
    assert math.isnan(likelihoods.first_below(values, 0.5))


@pytest.mark.parametrize(("first", "last"), [(0, 20_000), (1, 1000), (0, 5)])
def test_curves_keep_both_ends(first, last):
    steps = likelihoods.thinned(first, last)
    assert steps[0] == first and steps[-1] == last
    assert (np.diff(steps) > 0).all() and len(steps) <= likelihoods.N_POINTS


def test_surfaces_explain_bias_and_slowness():
    smaller = np.linspace(0.1, 4, 40)
    # The divergence is best all along the ridge, the probability where the rates are small.
    np.testing.assert_allclose(likelihoods.negative_divergence(1 + smaller, smaller), 0, atol=1e-12)
    assert (np.diff(likelihoods.log_probability(1 + smaller, smaller)) < 0).all()
    assert likelihoods.log_probability(0.7, 0.0) == pytest.approx(math.log(0.7) - 0.7)


def test_medians_count_runs_that_did_not_arrive():
    assert likelihoods.median_text(pd.Series([1.0, 2.0, math.nan]), 1) == "2.0"
    assert likelihoods.median_text(pd.Series([1.0, math.nan, math.nan]), 1) == "–"


def test_an_interrupted_experiment_ends_as_if_it_had_not_been(quick, tmp_path):
    for name in ("once", "twice"):
        (tmp_path / name).mkdir()
    findings(tmp_path / "twice")
    twice, once = (findings(tmp_path / name, runs=2) for name in ("twice", "once"))
    assert table(twice, "errors") == table(once, "errors")
    iterations = [[row[:4] for row in table(found, "speed").rows] for found in (once, twice)]
    assert iterations[0] == iterations[1]


def test_tables_have_the_noise_of_the_text_and_of_the_published_run(quick, tmp_path):
    found = findings(tmp_path)
    assert [row[:3] for row in table(found, "errors").rows] == [
        ["Sk∞ (real)", "0", ""],
        ["Sk1 (integer)", "0", ""],
        ["Sk∞ (real)", "0.0001", "9.0e-08"],
        ["Sk1 (integer)", "0.0001", "1.2e-01"],
    ]
    found = findings(tmp_path, noise=likelihoods.PUBLISHED_NOISE)
    assert {row[1] for row in table(found, "errors").rows} == {"0.0001"}


def test_all_files_are_written(quick, tmp_path):
    settings = Settings(out=tmp_path, runs=1)
    reproduce(likelihoods, settings, Console(file=StringIO(), width=300))
    for name in ("activations", "convergence", "surfaces"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert {"errors.csv", "speed.csv"} <= {path.name for path in tmp_path.iterdir()}
