"""Clusters against classes."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma

from seminmf.datasets import make_waveform
from seminmf.experiments import Settings, clustering
from seminmf.experiments._runs import run_all


@pytest.mark.parametrize("seed", range(5))
def test_accuracy_is_that_of_the_best_matching(seed):
    rng = np.random.default_rng(seed)
    classes, clusters = rng.integers(0, 4, 50), rng.integers(0, 4, 50)
    best = max(
        np.mean(np.array(order)[clusters] == classes) for order in itertools.permutations(range(4))
    )
    names = np.array(["b", "d", "a", "c"])[classes]
    assert clustering.accuracy(names, clusters) == pytest.approx(100 * best)


def test_accuracy_with_fewer_clusters_than_classes():
    classes = np.array([0, 0, 0, 1, 1, 2])
    assert clustering.accuracy(classes, np.zeros(6, dtype=int)) == 50.0
    assert clustering.accuracy(classes, np.array([1, 1, 1, 0, 0, 0])) == pytest.approx(500 / 6)


def test_the_papers_table_is_whole():
    assert list(clustering.PAPER) == list(clustering.PAPER_ALGORITHMS)
    assert all(len(row) == len(clustering.DATA) == 4 for row in clustering.PAPER.values())


@pytest.mark.parametrize("data", clustering.DATA)
def test_dummy_is_the_papers(data):
    """It depends on the data alone."""
    found = clustering._run_once(data, "dummy", 0, None)
    paper = clustering.PAPER["dummy"][clustering.DATA.index(data)][0]
    tolerance = 1.0 if data == "Wave" else 0.06  # Wave may be a new draw
    assert found["accuracy"] == pytest.approx(paper, abs=tolerance)


@pytest.mark.parametrize("algorithm", clustering.ALGORITHMS)
def test_every_algorithm_labels_all_samples(algorithm):
    X, _ = make_waveform(60, random_state=0)
    found = clustering.ALGORITHMS[algorithm](X, 3, 0)
    assert found.labels.shape == (60,)
    assert found.labels.min() >= 0 and found.labels.max() < 3
    assert np.isfinite(found.objective)
    again = clustering.ALGORITHMS[algorithm](X, 3, 0)
    np.testing.assert_array_equal(found.labels, again.labels)


def test_labels_are_those_of_the_paper():
    """Activations decide, and for a posterior their geometric means; not amounts."""
    X, _ = make_waveform(60, random_state=0)
    point = clustering.SkellamSNMF(3, random_state=0).fit(X)
    np.testing.assert_array_equal(clustering.membership(point), point.activations_)
    posterior = clustering.BayesianSkellamSNMF(3, random_state=0).fit(X)
    geometric = np.exp(digamma(posterior.activation_shape_)) / posterior.activation_rate_
    np.testing.assert_allclose(clustering.membership(posterior), geometric, rtol=1e-9)


def test_labels_are_those_of_the_last_iteration():
    """The paper's algorithms end where they end, without a solve for the activations."""
    X, _ = make_waveform(60, random_state=0)
    bayesian = clustering._Bayesian(3, posterior="mean-field", tol=1e-2, random_state=0)
    others = [cls(3, tol=1e-2, random_state=0) for cls in (clustering._Ding, clustering._Skellam)]
    for model in (*others, bayesian):
        model.fit(X)
        assert model.converged_
        # A parent would have solved for them, and would agree with transform.
        assert not np.allclose(model.activations_, model.transform(X), rtol=1e-6, atol=1e-9)


def test_best_of_takes_the_best_objective_of_each_ten():
    rng = np.random.default_rng(0)
    part = pd.DataFrame({"objective": rng.normal(size=35), "accuracy": rng.random(35)})
    expected = [
        part["accuracy"][start + np.argmax(part["objective"][start : start + 10])]
        for start in (0, 10, 20)
    ]
    np.testing.assert_array_equal(clustering.best_of(part), expected)
    few = part.head(4)
    assert clustering.best_of(few).tolist() == [few["accuracy"][few["objective"].idxmax()]]


def test_the_waveform_data_come_from_a_folder(tmp_path):
    remark = "Wave is a new draw"
    options = {"data": ["Wave"], "algorithms": ["dummy", "K-means"]}
    settings = Settings(tmp_path, 2, data_home=tmp_path, options=options)
    found = run_all(clustering.plan(settings), tmp_path / "runs", 1)
    assert found["accuracy"].between(30, 60).all()
    findings = clustering.findings(found, settings)
    assert findings.remarks[0].startswith(remark)

    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [1657, 1647, 1696])
    rows = np.column_stack([rng.normal(size=(5000, 21)) + 3 * labels[:, None], labels])
    names = [*(f"x{i}" for i in range(1, 22)), "class"]
    frame = pd.DataFrame(rows, columns=names).astype({"class": int})
    frame.to_csv(tmp_path / "waveform21.csv", index=False)
    X, y = clustering.load_data("Wave", tmp_path)
    np.testing.assert_allclose(X, rows[:, :21])
    np.testing.assert_array_equal(y, labels)
    again = run_all(clustering.plan(settings), tmp_path / "runs", 1)
    assert set(again["rows"]) != set(found["rows"])  # other data are other runs
    assert clustering.findings(again, settings).remarks == []


def test_tables_and_picture(tmp_path):
    options = {"data": ["Ionosphere"], "algorithms": ["dummy", "K-means", "SkellamSNMF"]}
    settings = Settings(tmp_path, 2, options=options)
    found = run_all(clustering.plan(settings), tmp_path / "runs", 1)
    assert len(found) == 6 and found["seconds"].ge(0).all()
    findings = clustering.findings(found, settings)
    paper, beyond = findings.tables
    assert [row[:3] for row in paper.rows] == [
        ["Ionosphere", "dummy", "64.1 | 0.0"],
        ["Ionosphere", "K-means", "70.8 | 1.6"],
    ]
    assert paper.rows[0][3:] == ["64.1 | 0.0", "yes"]
    assert [row[1] for row in beyond.rows] == options["algorithms"]
    assert list(findings.pictures) == ["clustering"]
