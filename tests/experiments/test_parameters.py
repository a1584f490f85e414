"""The experiment of Table 3: scenarios, errors, and tables that do not depend on interruptions."""

import json
import math
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from numpy.random import RandomState
from rich.console import Console

from seminmf.experiments import Settings, parameters, reproduce
from seminmf.experiments._runs import run_all
from seminmf.experiments._scenarios import (
    PUBLISHED,
    SCENARIOS,
    Truth,
    best_order,
    draw_seeds,
    in_best_order,
    mse_m,
    mse_v,
)

SMALL = {"draws": 1, "dummies": 2, "samples": 30}


def settings(folder, runs=2, **options):
    return Settings(out=folder, runs=runs, options=SMALL | options)


def findings(folder, runs=2):
    asked = settings(folder, runs)
    found = run_all(parameters.plan(asked), folder / "runs.jsonl", jobs=1)
    return parameters.findings(found, asked)


def slow_error(sign, atoms, activations, found_atoms, found_activations):
    """The paper's formula, one number after the other."""
    total = 0.0
    (n_samples, n_components), n_features = activations.shape, atoms.shape[2]
    for j in range(n_samples):
        for k in range(n_components):
            for i in range(n_features):
                true = activations[j, k] * (atoms[0, k, i] + sign * atoms[1, k, i])
                found = found_activations[j, k] * (
                    found_atoms[0, k, i] + sign * found_atoms[1, k, i]
                )
                total += (true - found) ** 2
    return total / (n_samples * n_components * n_features)


# --- scenarios ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("seed", range(5))
def test_hyperparameters_are_those_of_the_scenario(name, seed):
    truth = SCENARIOS[name].draw(seed)
    lowest, highest = (1, 10) if name.startswith("low") else (0.5, 1)
    larger, smaller = truth.atom_shape.max(axis=0), truth.atom_shape.min(axis=0)
    assert truth.atom_shape.shape == (2, 2, 3)
    assert ((lowest <= larger) & (larger <= highest)).all()
    if name.endswith("low variance"):
        assert (smaller == 0.02).all()
    else:
        assert (smaller >= lowest).all()
    expected = [5, 50] if name.startswith("low") else [0.8, 0.5]
    np.testing.assert_array_equal(truth.activation_shape, expected)
    np.testing.assert_allclose(truth.activation_shape / truth.activation_rate, 300)


def test_low_variance_changes_the_smaller_sign_only():
    with_option = SCENARIOS["low uncertainty, low variance"].draw(3).atom_shape
    without = SCENARIOS["low uncertainty"].draw(3).atom_shape
    kept = with_option != 0.02
    assert (kept.sum(axis=0) == 1).all()
    np.testing.assert_array_equal(with_option[kept], without.max(axis=0)[np.where(kept)[1:]])


def test_draws_stay_as_they_are():
    uniform = RandomState(7).uniform(size=(2, 2, 3))
    for scenarios, width in ((SCENARIOS, 9), (PUBLISHED, 10)):
        truth = scenarios["low uncertainty"].draw(7)
        np.testing.assert_array_equal(truth.atom_shape, 1 + width * uniform)
        high = scenarios["high uncertainty"].draw(7)
        np.testing.assert_array_equal(high.atom_shape, 0.5 + 0.5 * uniform)


def test_matrices_depend_on_the_seed_and_the_number():
    truth = SCENARIOS["high uncertainty"].draw(0)
    X, atoms, activations = truth.matrix(0, 1, 20)
    assert X.shape == (20, 3) and atoms.shape == (2, 2, 3) and activations.shape == (20, 2)
    np.testing.assert_array_equal(X, truth.matrix(0, 1, 20)[0])
    assert not np.array_equal(X, truth.matrix(0, 2, 20)[0])
    assert not np.array_equal(X, truth.matrix(1, 1, 20)[0])
    truth.matrix(10**6, 1, 20)  # a seed that NumPy alone would refuse


def test_means_are_what_many_draws_average_to():
    truth = SCENARIOS["high uncertainty"].draw(1)
    many = Truth(
        *(np.tile(values, 4000) for values in truth[:2]), np.tile(truth.atom_shape, (1, 4000, 1))
    )
    _, atoms, activations = many.matrix(0, 0, 3)
    mean_atoms, mean_activations = truth.means(5)
    assert mean_activations.shape == (5, 2)
    drawn = atoms.reshape(2, 4000, 2, 3).mean(axis=1)
    np.testing.assert_allclose(drawn, mean_atoms, atol=0.02)
    np.testing.assert_allclose(activations.mean(), mean_activations.mean(), rtol=0.05)


def test_seeds_of_experiments_have_draws_of_their_own():
    assert not set(draw_seeds(0, 20)) & set(draw_seeds(1, 20))
    assert list(draw_seeds(0, 3)) == [0, 1, 2]


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "sign"), [(mse_m, -1), (mse_v, 1)])
def test_errors_are_the_papers(error, sign):
    random = RandomState(0)
    arrays = [random.gamma(1, size=shape) for shape in 2 * [(2, 3, 4), (5, 3)]]
    assert error(*arrays) == pytest.approx(slow_error(sign, *arrays))
    assert error(*arrays[:2], *arrays[:2]) == 0


def test_best_order_undoes_a_permutation():
    random = RandomState(0)
    atoms, activations = random.gamma(1, size=(2, 3, 4)), random.gamma(1, size=(5, 3))
    shuffled = [array[:, [2, 0, 1]] for array in (atoms, activations)]
    assert in_best_order(lambda *found: mse_m(atoms, activations, *found), *shuffled) == 0
    order = best_order(lambda *found: mse_m(atoms, activations, *found), *shuffled)
    np.testing.assert_array_equal(shuffled[1][:, order], activations)


def test_a_run_compares_all_algorithms():
    scenario = SCENARIOS["low uncertainty, low variance"]
    found = parameters.compare(scenario, 0, 1, 60)
    assert all(math.isfinite(value) for value in found.values())
    truth = scenario.draw(0)
    _, atoms, activations = truth.matrix(0, 1, 60)
    shape = truth.atom_shape
    dummy = shape / shape.sum(axis=(0, 2))[:, None], np.full((60, 2), 300.0)
    assert found["Dummy mse_m"] == pytest.approx(slow_error(-1, atoms, activations, *dummy))
    assert found["Dummy mse_v"] == pytest.approx(slow_error(1, atoms, activations, *dummy))
    for name in parameters.FITTED:
        assert found[f"{name} mse_m"] < found["Dummy mse_m"]
        assert found[f"{name} converged"] and found[f"{name} iterations"] > 0
        both, matched = (
            sum(found[f"{name}{kind} {metric}"] for metric in parameters.METRICS)
            for kind in ("", " matched")
        )
        assert matched == both if not found[f"{name} swapped"] else matched < both


def test_the_dummy_errs_by_the_variance_of_the_prior():
    scenario = SCENARIOS["high uncertainty"]
    found = parameters.compare_dummy(scenario, 0, 4000, 3)
    truth = scenario.draw(0)
    mean = truth.activation_shape / truth.activation_rate
    square = mean**2 + truth.activation_shape / truth.activation_rate**2
    for metric, sign in (("mse_m", -1), ("mse_v", 1)):
        # First and second moments of θ_0 ± θ_1, atoms being Dirichlet over signs and features.
        total = truth.atom_shape.sum(axis=(0, 2))[:, None]
        positive, negative = truth.atom_shape
        first = (positive + sign * negative) / total
        second = positive * (positive + 1) + negative * (negative + 1)
        second = (second + 2 * sign * positive * negative) / (total * (total + 1))
        variance = square[:, None] * second - (mean[:, None] * first) ** 2
        assert found[f"Dummy {metric}"] == pytest.approx(variance.mean(), rel=0.05)


# --- tables -------------------------------------------------------------------------------------


def test_the_papers_table_is_whole():
    cells = [(*key, scenario) for key, row in parameters.TABLE_3.items() for scenario in row]
    assert len(set(cells)) == 24
    for metric in parameters.METRICS:
        for algorithm in parameters.ALGORITHMS:
            row = parameters.TABLE_3[metric, algorithm]
            assert list(row) == list(SCENARIOS)
            assert all(mean > 0 and spread > 0 for mean, spread in row.values())


def test_cells_summarise_draws_and_not_runs():
    # Draw 0 has the mean 2 and the standard deviation 1, draw 1 has 6 and 0, draw 2 has 10 and 3.
    values = {0: [1, 3], 1: [6, 6], 2: [7, 13]}
    columns = [f"{algorithm} {metric}" for metric, algorithm in parameters.TABLE_3]
    found = pd.DataFrame(
        {"scenario": scenario, "draw": draw} | dict.fromkeys(columns, 1000.0 * value)
        for scenario in SCENARIOS
        for draw, row in values.items()
        for value in row
    )
    cells = list(parameters.compared(found))
    assert len(cells) == 24
    for cell in cells:
        np.testing.assert_allclose(cell.means, [2, 6, 10])
        np.testing.assert_allclose(cell.spreads, [1, 0, 3])
        assert cell.mean == 6
        assert cell.range == pytest.approx((2.4, 9.6))
        assert cell.paper_in_range == (2.4 <= cell.paper_mean <= 9.6)
        assert cell.in_paper_spread == (abs(cell.paper_mean - 6) <= cell.paper_spread)
    table = parameters.side_by_side(cells)
    assert all(row[4:6] == ["6.00 | 1.00", "2.40 to 9.60"] for row in table.rows)
    assert table.rows[0][:4] == ["low", "mse_m", "Dummy", "1.01 | 0.54"]


def test_an_interrupted_experiment_ends_as_if_it_had_not_been(tmp_path):
    for name in ("once", "twice"):
        (tmp_path / name).mkdir()
    findings(tmp_path / "twice", runs=1)
    twice, once = (findings(tmp_path / name) for name in ("twice", "once"))
    # Two matrices; the dummy in two draws, first with one matrix each, then with two.
    assert len((tmp_path / "twice" / "runs.jsonl").read_text().splitlines()) == 6 * len(SCENARIOS)
    for resumed, fresh in zip(twice.tables, once.tables, strict=True):
        if fresh.name != "cost":  # which has seconds
            assert resumed == fresh
    assert [table.name for table in once.tables] == ["errors", "dummy", "order", "cost"]
    assert [len(table.rows) for table in once.tables] == [24, 8, 8, 8]
    assert all(len(row) == len(t.columns) for t in once.tables for row in t.rows)


def test_all_files_are_written(tmp_path):
    reproduce(parameters, settings(tmp_path, 1), Console(file=StringIO(), width=300))
    assert (tmp_path / "parameters.png").read_bytes().startswith(b"\x89PNG")
    names = {path.name for path in tmp_path.iterdir()}
    assert {"errors.csv", "dummy.csv", "order.csv", "cost.csv", "results.md"} <= names


def test_other_settings_are_other_runs(tmp_path):
    def keys(*args, **options):
        chains = parameters.plan(settings(tmp_path, *args, **options))
        return {json.dumps(run.key) for chain in chains for run in chain}

    assert len(keys()) == 4 * len(SCENARIOS)
    assert keys(2) < keys(2, draws=2) and keys(2) < keys(2, dummies=3)
    assert len(keys(1) & keys(2)) == len(SCENARIOS)
    assert not keys() & keys(samples=61)
    # Only shapes of low uncertainty differ in the published runs.
    assert len(keys() & keys(published=True)) == 2 * len(SCENARIOS)
