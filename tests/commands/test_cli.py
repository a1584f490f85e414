"""The command line."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from seminmf import BayesianSkellamSNMF, cli, demo, load
from seminmf.datasets import load_ionosphere


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    """Result and folder of one run of the demo."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return run("demo", "--out", folder, "--seed", 3), folder


def test_demo_writes_a_picture_and_a_model(demonstration):
    result, folder = demonstration
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == ["demo.png", "demo.safetensors"]
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    model = load(folder / "demo.safetensors")
    assert isinstance(model, BayesianSkellamSNMF)
    X, _ = load_ionosphere(return_X_y=True)
    assert np.isfinite(model.transform(X)).all()


def test_demo_says_how_good_it_is(demonstration):
    result, _ = demonstration
    words = " ".join(result.stdout.split())
    for word in ("seminmf", "mean of the column", "zero", "90% intervals", "demo.png"):
        assert word in words
    assert "\x1b" not in result.stdout  # no colours in a pipe
    assert "it/s" not in result.output  # nor a progress bar


def test_demo_beats_the_simple_fills():
    errors = demo.study(seed=0).errors
    assert errors["seminmf"] < 0.9 * errors["mean of the column"] < 0.9 * errors["zero"]


def test_hidden_cells_are_a_share_of_all():
    mask = demo.choose_cells((30, 20), 0.2, np.random.RandomState(0))
    assert mask.shape == (30, 20)
    assert mask.sum() == 120


@pytest.mark.parametrize(
    "arguments",
    [("demo", "--seed", -1), ("demo", "--seed", "one"), ("demo", "--speed", 1), ("nothing",)],
)
def test_bad_arguments_exit_with_2(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments).exit_code == 2
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_the_folder_exits_with_2(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "--out", tmp_path / "file")
    assert result.exit_code == 2
    assert (tmp_path / "file").read_text() == ""


def test_trouble_with_the_disk_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("demo", "--out", tmp_path / "file" / "folder")
    assert result.exit_code == 1
    assert result.output.startswith("seminmf: ")
    assert result.output.count("\n") == 1


def test_version():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("seminmf ")


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from seminmf.cli import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'numba', 'sklearn', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert "demo" in result.stdout
