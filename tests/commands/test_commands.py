"""The commands that work with tables, as their users call them: in processes of their own."""

import contextlib
import errno
import fcntl
import json
import os
import pty
import resource
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

from seminmf import (
    BayesianSkellamSNMF,
    PriorLearner,
    SkellamSNMF,
    SkellamSNTF,
    bootstrap,
    cli,
    load,
    sample_skellam_snmf,
)
from seminmf._estimators import checkpoint

CODE = "from seminmf.cli import app; app(prog_name='seminmf')"
FORMATS = ("csv", "tsv", "parquet", "npy", "npz")
# One of text and one of numbers in each run, the others with the slow tests.
TRIED = [
    kind if kind in ("csv", "npz") else pytest.param(kind, marks=pytest.mark.slow)
    for kind in FORMATS
]
NAMED = ("csv", "tsv", "parquet")


def seminmf(*arguments, folder, input=None, limit=None):
    """Run the command in a folder; `limit` is the size in bytes that files may have."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}

    def before():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-c", CODE, *map(str, arguments)],
        capture_output=True,
        cwd=folder,
        env=environment,
        input=input,
        preexec_fn=before,
    )


def run(*arguments, folder, process=False, **options):
    """Exit code, standard output and error of the command, in a process of its own or in this."""
    if process or options:
        result = seminmf(*arguments, folder=folder, **options)
        return result.returncode, result.stdout.decode(), result.stderr.decode()
    with contextlib.chdir(folder):
        result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def done(*arguments, folder, **options):
    """What a command that went well wrote to standard output."""
    code, out, text = run(*arguments, folder=folder, **options)
    assert code == 0, text
    assert "\x1b" not in out + text  # neither colours nor bars in a pipe
    assert "it/s" not in text
    return out


def refused(*arguments, folder, code=2, **options):
    """The sentence of a command that did not go well, and left nothing behind."""
    before = sorted(Path(folder).iterdir())
    found, out, text = run(*arguments, folder=folder, **options)
    assert found == code, text
    assert not out
    assert text.startswith("seminmf: ") and text.count("\n") == 1, text
    assert sorted(Path(folder).iterdir()) == before
    return text


@pytest.fixture(scope="module")
def X():
    values, _, _ = sample_skellam_snmf(40, 5, 2, missing=0.1, random_state=0)
    return values


@pytest.fixture(scope="module")
def folder(X, tmp_path_factory):
    """The same table in all formats: with names where there can be any, and without."""
    folder = tmp_path_factory.mktemp("tables")
    frame = pd.DataFrame(X, columns=["a", "b c", 'd"', "e,f", "γ"])
    frame.insert(0, "name", [f"sample {j}" for j in range(len(frame))])
    frame["note"] = "text"
    frame["class"] = np.where(np.nan_to_num(X[:, 0]) > 0, "up", "down")
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_csv(folder / "table.tsv", sep="\t", index=False)
    frame.to_parquet(folder / "table.parquet")
    np.save(folder / "table.npy", X)
    np.savez_compressed(folder / "table.npz", anything=X)
    return folder


def table_options(kind):
    return ("--id", "name", "--drop", "note", "--label", "class") if kind in NAMED else ()


def read(path):
    kind = path.suffix[1:]
    if kind == "npy":
        return np.load(path, allow_pickle=False)
    if kind == "npz":
        with np.load(path, allow_pickle=False) as file:
            return file["data"]
    if kind == "parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, sep="," if kind == "csv" else "\t")


@pytest.fixture(scope="module")
def models(folder):
    """A model for each format."""
    for kind in FORMATS:
        bayes = ["--bayes"] if kind == "csv" else []
        found = done(
            *("fit", f"table.{kind}", "-k", 2, "--seed", 0, "-o", f"{kind}.safetensors", "--json"),
            *table_options(kind),
            *bayes,
            folder=folder,
            process=True,
        )
        said = json.loads(found)
        assert said["n_components"] == 2 and said["n_samples"] == 40 and said["n_features"] == 5
        assert said["converged"] is True and said["warnings"] == []
        assert said["missing"] == pytest.approx(0.1, abs=0.03)
        assert sum(said["shares"]) == pytest.approx(1)
    return {kind: load(folder / f"{kind}.safetensors") for kind in FORMATS}


# --- good input ---------------------------------------------------------------------------------


def test_all_formats_give_the_same_model(models, X):
    expected = SkellamSNMF(2, random_state=0).fit(X)
    for kind in FORMATS[1:]:
        np.testing.assert_array_equal(models[kind].components_, expected.components_)
        assert hasattr(models[kind], "feature_names_in_") == (kind in NAMED)
    assert models["csv"].feature_names_in_.tolist() == ["a", "b c", 'd"', "e,f", "γ"]
    posterior = BayesianSkellamSNMF(2, random_state=0).fit(X)
    np.testing.assert_array_equal(models["csv"].atom_shape_, posterior.atom_shape_)


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_bootstrap(folder, models, X, kind, tmp_path):
    model, data = f"{kind}.safetensors", f"table.{kind}"
    out, amounts = tmp_path / "components.csv", tmp_path / "amounts.csv"
    options = ("--draws", 4, "--seed", 0, *table_options(kind))
    said = done(
        *("bootstrap", model, data, "-o", out, "--amounts", amounts, "--json", *options),
        folder=folder,
    )
    said = json.loads(said)
    frame = pd.DataFrame(X, columns=models[kind].feature_names_in_)
    found = bootstrap(models[kind], frame, n_draws=4, random_state=0)
    assert said["returned"] == found.n_returned.tolist() and said["n_draws"] == 4
    components = read(out)
    assert components["lower"].to_numpy() == pytest.approx(found.components.lower.ravel())
    assert components["upper"].to_numpy() == pytest.approx(found.components.upper.ravel())
    assert components["feature"][:5].tolist() == ["a", "b c", 'd"', "e,f", "γ"]
    table = read(amounts)
    assert table["name"].tolist()[0] == "sample 0"
    assert table["component_1_upper"].to_numpy() == pytest.approx(found.amounts.upper[:, 1])
    page = tmp_path / "page.html"
    done(
        "report",
        model,
        data,
        "--bootstrap",
        3,
        "--force",
        "-o",
        page,
        *table_options(kind),
        folder=folder,
    )
    assert "Came back" in page.read_text()
    words = refused("report", model, "--bootstrap", 3, "-o", page, folder=folder)
    assert "--bootstrap needs the data" in words
    words = refused("report", model, "-o", page, folder=folder)
    assert "is there already: --force overwrites it" in words and "Came back" in page.read_text()
    words = refused("bootstrap", model, data, "--level", 2, *table_options(kind), folder=folder)
    assert "level must be between 0 and 1" in words


@pytest.mark.parametrize("kind", TRIED)
def test_outputs_are_those_of_the_estimator(kind, models, folder, X):
    model, data = f"{kind}.safetensors", f"table.{kind}"
    outputs = {name: f"{name}-{kind}.{kind}" for name in ("transform", "cluster", "impute")}
    for command, out in outputs.items():
        arguments = (command, model, data, "-o", out, *table_options(kind))
        done(*arguments, folder=folder, process=True)
    found = {command: read(folder / out) for command, out in outputs.items()}
    named = pd.DataFrame(X, columns=getattr(models[kind], "feature_names_in_", None))
    data = named if kind in NAMED else X
    activations, clusters = models[kind].transform(data), models[kind].predict(data)
    filled = np.asarray(models[kind].impute(data))
    if kind not in NAMED:
        np.testing.assert_array_equal(found["transform"], activations)
        np.testing.assert_array_equal(found["cluster"][:, 0], clusters)
        assert found["cluster"].shape == (40, 2)
        np.testing.assert_array_equal(found["impute"], filled)
        return
    table = read(folder / f"table.{kind}")
    names = table["name"].tolist()
    assert found["transform"].columns.tolist() == ["name", "component_0", "component_1"]
    assert all(frame["name"].tolist() == names for frame in found.values())
    np.testing.assert_allclose(found["transform"].iloc[:, 1:], activations, rtol=1e-12)
    np.testing.assert_array_equal(found["cluster"]["cluster"], clusters)
    assert found["cluster"].columns.tolist() == ["name", "cluster", "share", "class"]
    amounts = activations * np.abs(models[kind].components_).sum(axis=1)
    share = amounts[np.arange(40), clusters] / amounts.sum(axis=1)
    np.testing.assert_allclose(found["cluster"]["share"], share, rtol=1e-12)
    # The whole table comes back, with what is no feature as it was.
    assert found["impute"].columns.tolist() == table.columns.tolist()
    assert found["impute"]["note"].tolist() == table["note"].tolist()
    np.testing.assert_allclose(found["impute"].iloc[:, 1:6], filled, rtol=1e-12)


@pytest.mark.parametrize("kind", TRIED)
def test_select_and_learn_on_all_formats(kind, folder, tmp_path):
    out = tmp_path / "scores.csv"
    options = ("--min", 1, "--max", 2, "--seed", 0, "--plot", tmp_path / "choice.png")
    said = done(
        *("select", f"table.{kind}", "-o", out, "--json", "--likelihood", "integer", *options),
        *table_options(kind),
        folder=folder,
        process=True,
    )
    assert json.loads(said)["table"]["n_components"] == [1, 2]
    assert pd.read_csv(out)["n_components"].tolist() == [1, 2]
    assert (tmp_path / "choice.png").read_bytes().startswith(b"\x89PNG")
    state = tmp_path / "state.safetensors"
    options = ("-k", 2, "--likelihood", "integer", "--seed", 0, *table_options(kind))
    done("learn", state, f"table.{kind}", *options, folder=folder, process=True)
    done("learn", state, f"table.{kind}", *table_options(kind), folder=folder)
    learner = load(state)
    assert isinstance(learner, PriorLearner) and learner.n_matrices_ == 2


def test_a_learned_prior_serves_a_fit(folder, X, tmp_path):
    state, model = tmp_path / "state.safetensors", tmp_path / "model.safetensors"
    options = ("-k", 2, "--likelihood", "integer", "--seed", 0)
    said = done("learn", state, "table.npy", "table.npy", *options, "--json", folder=folder)
    assert [one["n_matrices"] for one in json.loads(said)["learned"]] == [1, 2]
    done("fit", "table.npy", "--prior", state, "--seed", 0, "-o", model, folder=folder)
    learner = PriorLearner(
        BayesianSkellamSNMF(2, likelihood="integer", random_state=0), learning_rate="annealed"
    )
    expected = learner.partial_fit(X).partial_fit(X).estimator_.fit(X)
    np.testing.assert_allclose(load(model).atom_shape_, expected.atom_shape_, rtol=1e-6)
    assert "learned prior" in refused("transform", state, "table.npy", folder=folder)
    assert "give none" in refused("learn", state, "table.npy", "-k", 3, folder=folder)
    assert "n matrices: 2" in done("info", state, folder=folder)


def test_pipes(folder, models, X):
    table = (folder / "table.csv").read_bytes()
    options = ("--id", "name", "--drop", "note", "--drop", "class")
    text = done("transform", "csv.safetensors", "-", *options, folder=folder, input=table)
    done("transform", "csv.safetensors", "table.csv", *options, "-o", "t.csv", folder=folder)
    assert text.encode() == (folder / "t.csv").read_bytes()
    array = (folder / "table.npy").read_bytes()
    arguments = ("impute", "npy.safetensors", "-", "--format", "npy")
    filled = done(*arguments, folder=folder, input=array)
    values = np.array([line.split(",") for line in filled.split()], dtype=float)
    np.testing.assert_allclose(values, models["npy"].impute(X), rtol=1e-12)


def test_labels_are_compared_with_clusters(folder, models):
    arguments = ("cluster", "csv.safetensors", "table.csv", "--label", "class", "-o", "l.csv")
    said = json.loads(done(*arguments, "--json", folder=folder))
    table, clusters = pd.read_csv(folder / "table.csv"), pd.read_csv(folder / "l.csv")["cluster"]
    same = ((table["class"] == "up") == (clusters == 1)).mean()
    assert said["accuracy"] == pytest.approx(max(same, 1 - same))
    assert sum(said["sizes"]) == 40
    expected = adjusted_rand_score(table["class"], clusters)
    assert said["adjusted_rand_index"] == pytest.approx(expected)


def test_intervals_of_gaps(folder, models, X):
    arguments = ("impute", "csv.safetensors", "table.csv", "-o", "f.csv")
    ends = ("--lower", "low.csv", "--upper", "high.csv", "--level", 0.8)
    done(*arguments, *ends, folder=folder)
    low, filled, high = (
        pd.read_csv(folder / f"{name}.csv").iloc[:, 1:6].to_numpy() for name in ("low", "f", "high")
    )
    gaps = np.isnan(X)
    assert gaps.any() and (low[gaps] < filled[gaps]).mean() > 0.9
    assert (filled[gaps] < high[gaps]).mean() > 0.9
    np.testing.assert_array_equal(low[~gaps], X[~gaps])


def test_features_are_found_by_name(folder, models, tmp_path):
    table = pd.read_csv(folder / "table.csv")
    shuffled = table[[*reversed(table.columns)]].assign(another=1.0)
    shuffled.to_csv(folder / "shuffled.csv", index=False)
    outputs = [
        done("transform", "csv.safetensors", name, "--id", "name", folder=folder)
        for name in ("table.csv", "shuffled.csv")
    ]
    assert outputs[0] == outputs[1]
    table.drop(columns="a").to_csv(folder / "less.csv", index=False)
    assert "'a'" in refused("transform", "csv.safetensors", "less.csv", folder=folder)


def test_names_and_numbers_meet(folder, models, X):
    """A model without names takes the columns as they come, and a table without names as well."""
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    frame.insert(0, "who", np.arange(len(X)))
    frame.to_csv(folder / "other.csv", index=False)
    arguments = ("impute", "npy.safetensors", "other.csv", "--id", "who", "-o", "o.csv")
    done(*arguments, folder=folder)
    found = pd.read_csv(folder / "o.csv")
    assert found.columns.tolist() == frame.columns.tolist()
    np.testing.assert_allclose(found.iloc[:, 1:], models["npy"].impute(X), rtol=1e-12)
    done("impute", "tsv.safetensors", "table.npy", "-o", "o.npy", folder=folder)
    np.testing.assert_array_equal(np.load(folder / "o.npy"), models["npy"].impute(X))
    (folder / "wide.csv").write_text("a,b\n1,2\n")
    text = refused("transform", "npy.safetensors", "wide.csv", folder=folder)
    assert "2 features" in text and "5" in text


def test_what_stands_for_a_gap(folder, X, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.fillna(-999).to_csv(tmp_path / "numbers.csv", index=False)
    frame.astype(object).where(frame.notna(), "?").to_csv(tmp_path / "text.csv", index=False)
    np.save(tmp_path / "numbers.npy", np.nan_to_num(X, nan=-999))
    expected = SkellamSNMF(2, random_state=0).fit(X).components_
    for name, mark in (("numbers.csv", -999), ("text.csv", "?"), ("numbers.npy", -999)):
        arguments = ("fit", name, "-k", 2, "--seed", 0, "-o", "m", "--missing", mark)
        done(*arguments, folder=tmp_path)
        np.testing.assert_array_equal(load(tmp_path / "m").components_, expected)
    assert "'?'" in refused("fit", "text.csv", "-k", 2, "-o", "n", folder=tmp_path)


def test_scaling_is_undone(folder, X, tmp_path):
    units = np.array([1e-3, 1.0, 50.0, 1e6, 0.2])
    frame = pd.DataFrame(X * units, columns=list("abcde"))
    frame.to_csv(tmp_path / "table.csv", index=False)
    arguments = ("fit", "table.csv", "-k", 2, "--seed", 0, "--scale", "-o", "m.safetensors")
    done(*arguments, folder=tmp_path)
    model = load(tmp_path / "m.safetensors")
    scale = np.sqrt(np.nanmean((X * units) ** 2, axis=0))
    np.testing.assert_allclose(model.feature_scale_, scale)
    done("impute", "m.safetensors", "table.csv", "-o", "filled.csv", folder=tmp_path)
    filled = pd.read_csv(tmp_path / "filled.csv")
    np.testing.assert_allclose(filled, model.impute(frame), rtol=1e-12)
    done("info", "m.safetensors", "-o", "components.csv", folder=tmp_path)
    components = pd.read_csv(tmp_path / "components.csv")
    np.testing.assert_allclose(components[list("abcde")], model.components_, rtol=1e-9)
    assert components["share"].sum() == pytest.approx(1)
    np.testing.assert_allclose(components["r2_drop"], model.r2_drop_, rtol=1e-9)
    arguments = ("fit", "table.csv", "-k", 2, "--likelihood", "integer", "--scale", "-o", "n")
    assert "--scale" in refused(*arguments, folder=tmp_path)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("zeros", ["observed", "missing"])
def test_sparse_tables(kind, zeros, tmp_path):
    dense = np.array([[1.0, 0, -2], [0, 3, 0], [4, 0, 5], [0, -1, 2]])
    matrix = sparse.csr_array(dense).asformat(kind)
    matrix.data[0] = 0.0  # stored, so it is data
    dense = matrix.toarray()
    sparse.save_npz(tmp_path / "table.npz", matrix)
    arguments = ("fit", "table.npz", "-k", 1, "--seed", 0, "-o", "m")
    assert "--zeros" in refused(*arguments, folder=tmp_path)
    done(*arguments, "--zeros", zeros, folder=tmp_path)
    expected = dense if zeros == "observed" else np.where(dense == 0, np.nan, dense)
    expected[0, 0] = 0.0
    model = SkellamSNMF(1, random_state=0).fit(expected)
    np.testing.assert_array_equal(load(tmp_path / "m").components_, model.components_)


def test_options_reach_the_estimator(folder, X, tmp_path):
    arguments = ("fit", "table.npy", "-k", 3, "-o", "m", "--seed", 4, "--max-iter", 7, "--tol", 0)
    options = ("--solver", "em", "--acceleration", "none", "--init", "svd", "--n-init", 2)
    priors = ("--activation-shape", 1.5, "--activation-rate", 0.1, "--atom-shape", 1.2)
    out = ("--likelihood", "integer", "--any-numbers", "--jobs", 1)
    code, _, text = run(*arguments, *options, *priors, *out, folder=folder)
    assert code == 0 and "warning: No convergence after --max-iter 7" in text
    parameters = load(folder / "m").get_params()
    expected = {
        "n_components": 3,
        "likelihood": "integer",
        "solver": "em",
        "acceleration": None,
        "init": "svd",
        "n_init": 2,
        "max_iter": 7,
        "tol": 0.0,
        "activation_shape_prior": 1.5,
        "activation_rate_prior": 0.1,
        "atom_shape_prior": 1.2,
        "check_integer": False,
        "random_state": 4,
        "n_jobs": 1,
    }
    assert {name: parameters[name] for name in expected} == expected
    done("fit", "table.npy", "-k", 1, "--euclidean", "--solver", "hals", "-o", "m", folder=folder)
    assert type(load(folder / "m")).__name__ == "EuclideanSNMF"
    scale = ("fit", "table.npy", "-k", 1, "--bayes", "--dispersion", 2.5, "-o", "m")
    done(*scale, folder=folder)
    assert load(folder / "m").dispersion_ == 2.5


def test_one_feature_that_decides_all_is_said(folder, X, tmp_path):
    frame = pd.DataFrame(X * [1, 1, 100, 1, 1], columns=list("abcde"))
    frame.to_csv(tmp_path / "table.csv", index=False)
    arguments = ("fit", "table.csv", "-k", 2, "--seed", 0, "-o", "m")
    _, _, text = run(*arguments, folder=tmp_path)
    assert "'c' has 100% of all squares" in text and "--scale" in text
    assert "squares" not in run(*arguments, "--scale", folder=tmp_path)[2]
    choice = ("select", "table.csv", "--max", 2, "--seed", 0, "--json")
    plain, scaled = (json.loads(done(*choice, *s, folder=tmp_path)) for s in ([], ["--scale"]))
    assert plain["warnings"] and not scaled["warnings"]
    assert plain["table"]["score"] != scaled["table"]["score"]


def test_columns_without_names_are_found_by_number(folder, X, tmp_path):
    np.save(tmp_path / "table.npy", X)
    done("fit", "table.npy", "-k", 2, "--drop", 2, "--seed", 0, "-o", "m", folder=tmp_path)
    expected = SkellamSNMF(2, random_state=0).fit(np.delete(X, 2, axis=1))
    assert load(tmp_path / "m").feature_names_in_.tolist() == ["0", "1", "3", "4"]
    done("impute", "m", "table.npy", "-o", "filled.npy", folder=tmp_path)
    filled = np.load(tmp_path / "filled.npy")
    np.testing.assert_array_equal(filled[:, 2], X[:, 2])
    np.testing.assert_array_equal(
        np.delete(filled, 2, axis=1), expected.impute(np.delete(X, 2, axis=1))
    )


def test_tables_in_another_encoding_are_told(tmp_path):
    (tmp_path / "latin.csv").write_bytes("ö,b\n1,2\n".encode("latin-1"))
    assert "not in UTF-8" in refused("fit", "latin.csv", "-k", 1, "-o", "m", folder=tmp_path)


def test_nothing_is_learned_if_a_later_table_is_none(folder, tmp_path):
    (tmp_path / "text.csv").write_text("a,b\nx,y\n")
    np.save(tmp_path / "good.npy", np.ones((5, 2)))
    arguments = ("learn", "state", "good.npy", "text.csv", "-k", 1)
    assert "'x'" in refused(*arguments, folder=tmp_path)


def test_ctrl_c_ends_with_130(tmp_path):
    np.save(tmp_path / "large.npy", np.random.RandomState(0).normal(size=(3000, 40)))
    arguments = ["fit", "large.npy", "-k", "8", "--tol", "0", "--max-iter", "100000", "-o", "m"]
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, *arguments, "--checkpoint", "c", "--checkpoint-every", "0"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        # A shell's background jobs ignore Ctrl-C, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    checkpoint, seen = tmp_path / "c", set()
    while len(seen) < 20:  # each note is a new file; then all that is compiled is loaded
        assert process.poll() is None
        seen |= {checkpoint.stat().st_mtime_ns} if checkpoint.exists() else set()
        time.sleep(0.02)
    for _ in range(10):  # as people do
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
            break
    text = process.stderr.read()
    assert process.wait(5) == 130, text
    assert b"The same command goes on from here." in text
    assert {path.name for path in tmp_path.iterdir()} == {"large.npy", "c"}


def test_ctrl_c_without_a_checkpoint_keeps_what_there_is(folder, tmp_path, monkeypatch):
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr("seminmf._algorithms.loop.Stopping.is_met", interrupted)
    out = tmp_path / "m"
    arguments = ["fit", str(folder / "table.npy"), "-k", "2", "-o", str(out)]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 130
    assert "Interrupted after" in result.stderr and "Stopped." in result.stderr
    assert load(out).stop_reason_ == "interrupted"


def test_a_checkpoint_goes_when_the_model_is_there(folder, monkeypatch):
    options = ("--seed", 0, "--tol", 0, "--max-iter", 30, "--dispersion", 0)
    arguments = ("fit", "table.npy", "-k", 2, *options, "-o", "whole")
    done(*arguments, folder=folder)
    stopped = (*arguments[:-1], "stopped", "--checkpoint", "run.ckpt", "--checkpoint-every", 0)

    def full_disk(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    # It cannot write its model, but the checkpoint stays; then it goes on.
    with monkeypatch.context() as patch, contextlib.chdir(folder):
        patch.setattr(SkellamSNMF, "save", full_disk)
        result = CliRunner().invoke(cli.app, [str(argument) for argument in stopped])
    assert result.exit_code == 1 and "No space left" in result.stderr
    assert (folder / "run.ckpt").exists() and not (folder / "stopped").exists()
    assert "--max-iter 30, not 9" in refused(*stopped, "--max-iter", 9, folder=folder)
    done(*stopped, folder=folder)
    assert not (folder / "run.ckpt").exists()
    assert (folder / "whole").read_bytes() == (folder / "stopped").read_bytes()


def test_a_stop_in_a_later_start_keeps_the_checkpoint(folder, tmp_path, monkeypatch):
    keep, calls = checkpoint.Journal.keep, []

    def interrupted(self, run):
        keep(self, run)
        calls.append(len(self._runs))
        if calls.count(2) == 3:
            raise KeyboardInterrupt

    path = tmp_path / "run.ckpt"
    arguments = ["fit", folder / "table.npy", "-k", 2, "--seed", 0, "--n-init", 3]
    arguments += ["-o", tmp_path / "m", "--checkpoint", path]
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Journal, "keep", interrupted)
        result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert result.exit_code == 130
    assert path.exists() and not (tmp_path / "m").exists()
    done(*arguments, folder=folder)
    whole = SkellamSNMF(2, random_state=0, n_init=3).fit(np.load(folder / "table.npy"))
    np.testing.assert_array_equal(load(tmp_path / "m").activations_, whole.activations_)


def test_what_is_no_feature_stays_as_it_is(tmp_path):
    rows = [
        "id,a,b,c,note",
        "000,1,,9007199254740993,NA",
        "001,2,3,4,1e3",
        "NA,-1,5,6,x y",
        "1.50,7,2,8,",
    ]
    text = "\n".join(rows) + "\n"
    (tmp_path / "t.csv").write_text(text)
    arguments = ("fit", "t.csv", "--id", "id", "--drop", "note", "-k", 1, "--seed", 0, "-o", "m")
    done(*arguments, folder=tmp_path)
    done("impute", "m", "t.csv", "-o", "f.csv", folder=tmp_path)
    found = (tmp_path / "f.csv").read_text().splitlines()
    assert len(found) == 5 and found[0] == rows[0]
    for before, after in zip(rows[1:], found[1:], strict=True):
        old, new = before.split(","), after.split(",")
        for column in (0, 1, 3, 4):
            assert new[column] == old[column]
        assert float(new[2]) == (float(old[2]) if old[2] else float(new[2]))
    out = done("transform", "m", "t.csv", "--id", "id", folder=tmp_path).splitlines()
    assert [line.split(",")[0] for line in out] == ["id", "000", "001", "NA", "1.50"]


def test_names_that_outputs_have_themselves(folder, models, tmp_path):
    table = pd.read_csv(folder / "table.csv").rename(columns={"class": "cluster"})
    table.to_csv(folder / "named.csv", index=False)
    arguments = ("cluster", "csv.safetensors", "named.csv", "--label", "cluster")
    assert "rename yours" in refused(*arguments, folder=folder)
    table.rename(columns={"name": "component_0"}).to_csv(folder / "named.csv", index=False)
    arguments = ("transform", "csv.safetensors", "named.csv", "--id", "component_0")
    assert "rename yours" in refused(*arguments, folder=folder)


def test_a_learned_prior_knows_its_features_by_name(folder, tmp_path):
    X, _, _ = sample_skellam_snmf(60, 4, 2, random_state=1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame[list("dcba")].assign(more=1).to_csv(tmp_path / "r.csv", index=False)
    options = ("-k", 2, "--likelihood", "integer", "--seed", 0)
    done("learn", "state", "t.csv", "r.csv", *options, folder=tmp_path)
    for name in ("t", "r"):
        arguments = ("fit", f"{name}.csv", "--prior", "state", "--seed", 0, "-o", name)
        done(*arguments, folder=tmp_path)
    first, second = (load(tmp_path / name) for name in ("t", "r"))
    assert second.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(first.atom_shape_, second.atom_shape_)


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff1,2\n3,4\n5,6\n",
        "\n1,2\n3,4\n5,6\n",
        "1,NA\n3,4\n5,6\n",
        "1,2\r3,4\r5,6\r",
        '"1","2"\n3,4\n',
    ],
)
def test_a_first_line_of_data_is_never_taken_for_names(content, tmp_path):
    (tmp_path / "t.csv").write_bytes(content.encode())
    arguments = ("fit", "t.csv", "-k", 1, "--seed", 0, "-o", "m")
    assert "--header" in refused(*arguments, folder=tmp_path)


def test_infinities_do_not_get_through_scaling(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,inf,2\n3,4,5\n1,2,1\n")
    arguments = ("fit", "t.csv", "-k", 1, "-o", "m", "--scale")
    assert "must be finite" in refused(*arguments, folder=tmp_path)


def test_a_named_index_is_a_column(folder, X, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde")).set_index(pd.Index(np.arange(40), name="who"))
    frame.to_parquet(tmp_path / "t.parquet")
    arguments = ("fit", "t.parquet", "--id", "who", "-k", 2, "--seed", 0, "-o", "m")
    done(*arguments, folder=tmp_path)
    out = done("transform", "m", "t.parquet", "--id", "who", folder=tmp_path)
    assert out.splitlines()[3].startswith("2,")


def test_gaps_are_gaps_of_features(X, tmp_path):
    frame = pd.DataFrame(np.nan_to_num(X, nan=-999), columns=list("abcde"))
    frame.insert(0, "who", np.where(np.arange(40) == 3, -999, np.arange(40)))
    frame.to_parquet(tmp_path / "t.parquet")
    options = ("--id", "who", "--missing", -999)
    done("fit", "t.parquet", "-k", 2, "--seed", 0, "-o", "m", *options, folder=tmp_path)
    expected = SkellamSNMF(2, random_state=0).fit(X)
    np.testing.assert_array_equal(load(tmp_path / "m").components_, expected.components_)
    out = done("transform", "m", "t.parquet", *options, folder=tmp_path)
    assert out.splitlines()[4].startswith("-999,")


def test_names_cannot_steer_a_terminal(folder, X, tmp_path):
    frame = pd.DataFrame(X, columns=["\x1b[31mred", "b", "c", "d", "e"])
    frame.to_parquet(tmp_path / "t.parquet")
    done("fit", "t.parquet", "-k", 1, "--seed", 0, "-o", "m", folder=tmp_path)
    assert "\\x1b[31mred" in done("info", "m", folder=tmp_path)
    assert "\x1b" not in refused("transform", "m", folder / "table.csv", folder=tmp_path)


def test_info_tells_what_is_there(folder, models):
    said = json.loads(done("info", "csv.safetensors", "--json", folder=folder, process=True))
    assert said["estimator"] == "BayesianSkellamSNMF"
    assert said["feature_names"] == ["a", "b c", 'd"', "e,f", "γ"]
    assert said["parameters"]["random_state"] == 0
    assert said["r2"] == models["csv"].r2_
    assert said["r2_drop"] == models["csv"].r2_drop_.tolist()
    # A search for noise has several starts.
    assert not any("n_init=1" in concern for concern in said["concerns"])
    text = done("info", "npy.safetensors", folder=folder)
    assert "Only one start was made." not in text
    assert f"r2: {models['npy'].r2_:.6g}" in text
    assert "estimator: SkellamSNMF" in text and "n components: 2" in text


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "transform", "cluster", "impute", "select", "learn"])
def test_tables_that_are_none(command, folder, models, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("a,b\n")
    (tmp_path / "text.csv").write_text("a,b\n1,2\n3,four\n")
    (tmp_path / "infinite.csv").write_text("a,b\n1,2\n3,inf\n")
    (tmp_path / "pickle.npy").write_bytes(b"\x80\x04" + bytes(100))
    (tmp_path / "table.xlsx").write_text("a,b\n1,2\n")
    (tmp_path / "model").write_bytes((folder / "npy.safetensors").read_bytes())
    before = {"fit": ["fit"], "select": ["select"], "learn": ["learn", "new"]}
    after = {"fit": ["-k", 1, "-o", "m"], "select": ["--max", 1], "learn": ["-k", 1]}
    arguments = before.get(command, [command, "model"])
    expected = {
        "empty.csv": "no table in CSV",
        "header.csv": "no cells",
        "text.csv": "'four' in the column 'b'",
        "infinite.csv": "must be finite",
        "pickle.npy": "no table in NPY",
        "table.xlsx": "must end in one of",
        "none.csv": "cannot be read",
    }
    for name, words in expected.items():
        if name == "infinite.csv" and arguments[1:] == ["model"]:
            continue  # the model has more features
        options = after.get(command, [])
        process = name == "text.csv"
        text = refused(*arguments, name, *options, folder=tmp_path, process=process)
        assert words in text
        assert name in text or name == "infinite.csv"


@pytest.mark.parametrize("command", ["transform", "cluster", "impute", "info", "report"])
def test_models_that_are_none(command, folder, tmp_path):
    (tmp_path / "text").write_text("no model")
    np.save(tmp_path / "table.npy", np.ones((3, 2)))
    data = () if command == "info" else ("table.npy",)
    text = refused(command, "text", *data, folder=tmp_path, process=True)
    assert "not a seminmf model" in text
    assert "cannot be read" in refused(command, "nothing", *data, folder=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "table.npy", "-o", "m"), "-k"),
        (("fit", "table.npy", "-k", 2, "-o", "-"), "standard output"),
        (("fit", "table.npy", "-k", 2, "-o", "no/folder"), "no folder"),
        (("fit", "table.npy", "-k", 2, "-o", "m", "--bayes", "--euclidean"), "Only one"),
        (("fit", "table.npy", "-k", 2, "-o", "m", "--bayes", "--solver", "em"), "no --solver"),
        (("fit", "table.npy", "-k", 2, "-o", "m", "--tol", -1), "tol"),
        (("fit", "table.npy", "-k", 2, "-o", "m", "--id", "name"), "no column 'name'"),
        (("fit", "table.csv", "-k", 2, "-o", "m", "--drop", "nome"), "no column 'nome'"),
        (("fit", "table.npy", "-k", 2, "-o", "m", "--prior", "table.npy"), "not a seminmf model"),
        (("transform", "npy.safetensors", "table.npy", "-o", "t.xls"), "must end in"),
        (
            ("fit", "table.npy", "-k", 2, "-o", "m", "--euclidean", "--dispersion", 2),
            "no --dispersion",
        ),
        (
            ("fit", "table.npy", "-k", 2, "-o", "m", "--euclidean", "--atom-shape", 2),
            "no --atom-shape.",
        ),
        (("fit", "table.npy", "-k", 2, "-o", "../" + "tables0"), "it is a folder"),
        (("fit", "table.npy", "-k", 2, "-o", "./table.npy"), "read by this command"),
        (("fit", "table.npy", "-k", 2, "-o", "m", "--checkpoint", "m"), "two outputs"),
        (("transform", "npy.safetensors", "table.npy", "-o", "table.npy"), "read by this"),
        (("report", "npy.safetensors", "table.npy", "-o", "npy.safetensors"), "read by this"),
        (("report", "npy.safetensors", "table.npy", "-o", "table.npy"), "read by this"),
        (
            ("impute", "csv.safetensors", "table.csv", "-o", "z.csv", "--lower", "z.csv"),
            "two outputs",
        ),
        (("impute", "csv.safetensors", "table.csv", "--lower", "-"), "Standard output"),
        (("learn", "table.npy", "table.npy", "-k", 2), "read by this command"),
        (("transform", "npy.safetensors", "table.npy", "--json"), "standard output"),
        (("impute", "npy.safetensors", "table.npy", "--lower", "l.csv"), "--bayes"),
        (("select", "table.npy", "--min", 3, "--max", 2), "above --max"),
        (("learn", "new", "table.npy"), "-k"),
        (("info", "npy.safetensors", "-o", "-", "--json"), "standard output"),
    ],
)
def test_wrong_wishes(arguments, words, folder, models):
    assert words in refused(*arguments, folder=folder)


def test_a_first_line_of_numbers_is_a_question(tmp_path):
    (tmp_path / "years.csv").write_text("2001,2002\n1,2\n3,4\n5,7\n")
    arguments = ("fit", "years.csv", "-k", 1, "--seed", 0, "-o", "m")
    assert "--header" in refused(*arguments, folder=tmp_path)
    done(*arguments, "--header", folder=tmp_path)
    assert load(tmp_path / "m").feature_names_in_.tolist() == ["2001", "2002"]
    done(*arguments, "--no-header", folder=tmp_path)
    assert len(load(tmp_path / "m").activations_) == 4


# --- trouble with the disk ----------------------------------------------------------------------


def test_a_full_disk_leaves_the_older_file(folder, models, tmp_path):
    for arguments, out in (
        (("fit", "table.npy", "-k", 2), tmp_path / "m.safetensors"),
        (("transform", "npy.safetensors", "table.npy"), tmp_path / "t.csv"),
        (("report", "npy.safetensors", "table.npy", "--force"), tmp_path / "r.html"),
    ):
        out.write_text("older")
        text = refused(*arguments, "-o", out, folder=folder, code=1, limit=500)
        assert "File too large" in text and out.name in text and ".part" not in text
        assert out.read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"m.safetensors", "t.csv", "r.html"}


def test_a_folder_that_cannot_be_written(folder, models):
    text = refused("fit", "table.npy", "-k", 2, "-o", "/proc/model", folder=folder, code=1)
    assert "/proc/model" in text
    text = refused(
        "impute", "npy.safetensors", "table.npy", "-o", "/proc/t.csv", folder=folder, code=1
    )
    assert "/proc/t.csv" in text


def test_devices_stay_devices(folder, models):
    done("fit", "table.npy", "-k", 2, "-o", "/dev/null", folder=folder)
    assert not Path("/dev/null").is_file()


# --- pages and bars -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TRIED)
def test_reports_of_all_formats(kind, folder, models):
    options = ("--title", "<b>&", "-o", "page.html", "--force", *table_options(kind)[:4])
    arguments = ("report", f"{kind}.safetensors", f"table.{kind}", *options)
    done(*arguments, folder=folder, process=True)
    page = (folder / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "&lt;b&gt;&amp;" in page and "<b>&" not in page
    assert ("e,f" in page) == (kind in NAMED)
    assert f"table.{kind}" in page


def test_a_terminal_gets_a_bar_and_a_pipe_does_not(folder):
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1]), "TERM": "xterm"}
    arguments = ("fit", "table.npy", "-k", "2", "--tol", "0", "--max-iter", "200", "-o", "m")
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, *arguments], cwd=folder, env=environment, stderr=end
    )
    os.close(end)
    seen = b""
    with contextlib.suppress(OSError):  # which is how a terminal ends
        while chunk := os.read(terminal, 4096):
            seen += chunk
    os.close(terminal)
    assert process.wait() == 0
    assert b"it/s" in seen and b"objective" in seen
    result = seminmf(*arguments, folder=folder)
    assert b"it/s" not in result.stderr


@pytest.fixture(scope="module")
def tensor_file(tmp_path_factory):
    """A tensor model in a file, with its data beside it."""
    folder = tmp_path_factory.mktemp("tensors")
    data = np.random.default_rng(0).normal(size=(8, 3, 4))
    model = SkellamSNTF("nr,cr,tr->nct", 2, signed="cr", tol=1e-2, n_init=1, random_state=0)
    model.fit(data).save(folder / "model.safetensors")
    np.save(folder / "data.npy", data)
    np.savez(folder / "several.npz", a=data)
    (folder / "broken.npy").write_bytes(b"no array")
    return folder


def test_info_tells_of_tensors(tensor_file):
    said = done("info", "model.safetensors", folder=tensor_file)
    assert "model: nr,cr,tr->nct" in said
    assert "sizes: r=2, n=8, c=3, t=4" in said
    assert "factors: nr=8 × 2, free, cr=3 × 2, signed, sums to 1, tr=4 × 2, sums to 1" in said
    found = json.loads(done("info", "model.safetensors", "--json", folder=tensor_file))
    assert found["sizes"] == {"n": 8, "c": 3, "t": 4, "r": 2}
    assert len(found["r2_drop"]["r"]) == 2
    assert len(found["noise"]) == 3


def test_reports_of_tensors(tensor_file, tmp_path):
    for name, data in (("alone", []), ("both", ["data.npy"])):
        done("report", "model.safetensors", *data, "-o", tmp_path / name, folder=tensor_file)
        assert ("Largest residuals" in (tmp_path / name).read_text("utf-8")) == bool(data)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["info", "model.safetensors", "-o", "x.csv"], "whose factors are not one table"),
        (["impute", "model.safetensors", "x.csv", "-o", "y.csv"], "this command is for tables"),
        (["report", "model.safetensors", "x.csv", "-o", "y.html"], "must be an .npy file"),
        (["report", "model.safetensors", "none.npy", "-o", "y.html"], "cannot be read"),
        (["report", "model.safetensors", "broken.npy", "-o", "y.html"], "has no arrays of numbers"),
        (["report", "model.safetensors", "several.npz", "-o", "y.html"], "X must be one array"),
    ],
)
def test_what_is_not_for_tensors_is_told(arguments, words, tensor_file):
    assert words in refused(*arguments, folder=tensor_file)
