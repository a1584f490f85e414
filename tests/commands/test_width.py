"""What commands print fits into 80 columns, where these are all that there are."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from seminmf import EuclideanSNMF, cli
from seminmf._commands import output
from seminmf._commands import select as select_command
from seminmf.experiments._tables import Table, show
from seminmf.selection import Selection


def printed(*arguments):
    result = CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result.stdout


def longest(text):
    return max(map(len, text.splitlines()))


def test_info_of_many_long_names(tmp_path):
    names = [f"a feature with a long name {i}" for i in range(12)]
    X = pd.DataFrame(np.random.RandomState(0).normal(size=(30, 12)), columns=names)
    EuclideanSNMF(5, max_iter=5, random_state=0).fit(X).save(tmp_path / "m")
    text = printed("info", tmp_path / "m")
    assert 40 < longest(text) <= 80
    assert all(name in " ".join(text.split()) for name in names)


def test_a_choice_with_long_numbers(tmp_path, monkeypatch):
    columns = ("n_components", "score", "standard_error", "n_runs", "behind", "behind_error")
    table = pd.DataFrame({name: [-1234567.5, 12345.6] for name in (*columns, "lower_bound")})
    verdict = "No clear winner: 3 is chosen, but 1, 2, 4, 5, 6 and 7 cannot be ruled out. Really."
    found = Selection(3, False, verdict, table, "elbo")
    monkeypatch.setattr(select_command, "select_n_components", lambda *_, **__: found)
    pd.DataFrame(np.eye(4), columns=list("abcd")).to_csv(tmp_path / "t.csv", index=False)
    text = printed("select", tmp_path / "t.csv")
    assert longest(text) <= 80
    assert verdict in " ".join(text.split()) and all(name in text for name in table)


@pytest.mark.parametrize("n_columns", [2, 5, 9, 30])
def test_tables_of_experiments(n_columns):
    cells = [f"{k}.123 | 0.0{k}" for k in range(n_columns)]
    names = [f"column {k}" for k in range(n_columns)]
    table = Table("t", "A title", ["what it is", *names], [["a row", *cells], ["another", *cells]])
    file = io.StringIO()
    show(table, Console(file=file, width=80))
    text = file.getvalue()
    assert longest(text) <= 80
    assert all(name in text for name in names) and text.count(" 0.123 | 0.00 ") == 2
    assert all(text.count(f" {cell} ") >= 2 for cell in cells)
    assert text.count("a row") == text.count("A title")


def test_lines_in_a_pipe_stay_whole(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert output.folded("word " * 50) == "word " * 50
