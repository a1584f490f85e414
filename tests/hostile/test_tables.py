"""Tables that are odd, ambiguous, damaged or without end, as the commands get them."""

import contextlib
import os
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from seminmf import cli, load
from seminmf._commands import inputs


def run(*arguments, folder, input=None):
    """Exit code, standard output and error of the command."""
    with contextlib.chdir(folder):
        result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], input=input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def refused(*arguments, folder, code=2, input=None):
    """The sentence of a command that did not go well, and left nothing behind."""
    before = sorted(Path(folder).iterdir())
    found, out, text = run(*arguments, folder=folder, input=input)
    assert found == code, text
    assert not out and text.startswith("seminmf: ") and text.count("\n") == 1, text
    assert text.rstrip().endswith("."), text
    assert sorted(Path(folder).iterdir()) == before
    return text


def fit(data, *options, folder, **more):
    """What a fit to a table said, in words and as a model."""
    arguments = ("fit", data, "-k", 1, "--seed", 0, "-o", "m", *options)
    code, _, text = run(*arguments, folder=folder, **more)
    assert code == 0, text
    return text, load(Path(folder) / "m")


def cells(text):
    return [line.split(",") for line in text.splitlines()]


ROWS = [[1.0, 2.0], [3.0, -4.0], [-1.0, 0.5], [2.0, 2.0]]
PLAIN = "a,b\n1,2\n3,-4\n-1,0.5\n2,2\n"
FIT = ("-k", 1, "-o", "m")


# --- columns that number the rows -----------------------------------------------------------------


def test_a_first_column_without_a_name_has_the_ids(tmp_path):
    frame = pd.DataFrame(ROWS, columns=["a", "b"], index=["r1", "02", "3", "NA"])
    frame.loc["02", "b"] = np.nan
    frame.to_csv(tmp_path / "t.csv")
    text, model = fit("t.csv", folder=tmp_path)
    assert "t.csv: the first column has no name, and is taken for ids." in text
    assert model.feature_names_in_.tolist() == ["a", "b"]
    for command in ("transform", "cluster", "impute"):
        code, out, text = run(command, "m", "t.csv", folder=tmp_path)
        assert code == 0 and "taken for ids" in text
        assert [line[0] for line in cells(out)] == ["", "r1", "02", "3", "NA"]
    assert pd.read_csv(tmp_path / "t.csv").columns[0] == "Unnamed: 0"  # as pandas has it


def test_an_id_beside_a_first_column_without_a_name(tmp_path):
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(who=list("wxyz"))
    frame.to_csv(tmp_path / "t.csv")
    text, model = fit("t.csv", "--id", "who", folder=tmp_path)
    assert "the first column has no name, and is left out: 'who' has the ids." in text
    assert model.feature_names_in_.tolist() == ["a", "b"]
    _, out, _ = run("transform", "m", "t.csv", "--id", "who", folder=tmp_path)
    assert [line[0] for line in cells(out)] == ["who", *"wxyz"]


def test_numbers_of_rows_that_pandas_named_are_said(tmp_path):
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    frame.to_csv(tmp_path / "once.csv")
    pd.read_csv(tmp_path / "once.csv").to_csv(tmp_path / "t.csv")
    text, model = fit("t.csv", folder=tmp_path)
    assert "the column 'Unnamed: 0' is taken for a feature" in text and "--drop" in text
    text, model = fit("t.csv", "--drop", "Unnamed: 0", folder=tmp_path)
    assert "taken for a feature" not in text
    assert model.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("option", ["--id", "--label"])
def test_a_second_column_of_ids_is_refused(option, tmp_path):
    (tmp_path / "t.csv").write_text("x,y,a,b\nu,v,1,2\nw,z,3,4\n")
    text = refused("fit", "t.csv", *FIT, option, "x", option, "y", folder=tmp_path)
    assert f"{option} names one column; found 'x', 'y'." in text


# --- lines and names ------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\n", "\ufeff", "\ufeff\n\n"])
def test_an_empty_line_of_one_column_is_a_gap(start, end, tmp_path):
    text = f"{start}a\n1\n\n3\n\n-2\n".replace("\n", end)
    (tmp_path / "t.csv").write_bytes(text.encode())
    assert fit("t.csv", folder=tmp_path)[1].activations_.shape == (5, 1)
    code, out, _ = run("impute", "m", "t.csv", folder=tmp_path)
    lines = out.splitlines()
    assert code == 0 and [lines[i] for i in (0, 1, 3, 5)] == ["a", "1", "3", "-2"]
    assert np.isfinite([float(lines[i]) for i in (2, 4)]).all()


def test_an_empty_first_line_of_data_in_one_column_is_a_gap(tmp_path):
    (tmp_path / "t.csv").write_text("\n1\n\n3\n")
    assert len(fit("t.csv", "--no-header", folder=tmp_path)[1].activations_) == 4


def test_empty_lines_between_lines_of_several_cells_are_none(tmp_path):
    (tmp_path / "t.csv").write_text(PLAIN.replace("\n3", "\n\n\n3"))
    assert len(fit("t.csv", folder=tmp_path)[1].activations_) == 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n3\n", "fewer cells than there are columns: line 3 has 1, the first has 2"),
        ("\na,b\n1,2\n\n3\n", "line 5 has 1, the first has 2"),
        ('a,b\n"1\n",2\n3\n', "line 4 has 1, the first has 2"),
        ("a,b\n1,2,3\n3,4,5\n", "more cells than there are columns: line 2 has 3"),
        ("a,b\n1,2,\n3,4,\n", "more cells than there are columns: line 2 has 3"),
        ("a,b,\n1,2,\n3,4,\n", "column 3 of 3 has no name"),
        ("a,b,\n1,2\n3,4\n", "column 3 of 3 has no name"),
        ("a,,b\n1,2,3\n4,5,6\n", "column 2 of 3 has no name"),
        (",,\n1,2,3\n4,5,6\n", "column 2 of 3 has no name"),
        ("\n\n\r\n", "it is empty"),
        ('a,b\n1,"2\n3,4\n', "EOF inside string"),
    ],
)
def test_lines_and_names_that_cannot_be_right_are_refused(content, words, tmp_path):
    (tmp_path / "t.csv").write_bytes(content.encode())
    text = refused("fit", "t.csv", *FIT, folder=tmp_path)
    assert "t.csv is no table in CSV" in text and words in text


def test_columns_of_parquet_with_one_name_are_refused(tmp_path):
    columns = [pa.array([1.0, 2.0]), pa.array([3.0, 4.0])]
    pq.write_table(pa.Table.from_arrays(columns, names=["a", "a"]), tmp_path / "t.parquet")
    text = refused("fit", "t.parquet", *FIT, folder=tmp_path)
    assert "2 of its columns have the name 'a'" in text


# --- what is a number -----------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["2020_01", "1_000", "٣", "１２", "0x10", "1e", "+-1", "१.५"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_only_looks_like_a_number_is_text(cell, kind, tmp_path):
    frame = pd.DataFrame({"a": ["1", cell, "3"], "b": ["1", "2", "4"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    text = refused("fit", f"t.{kind}", *FIT, folder=tmp_path)
    assert f"{cell!r} in the column 'a', which is no number" in text
    # Neither in the first line, which has names then.
    (tmp_path / "names.csv").write_text(f"{cell},7\n1,2\n3,-4\n")
    assert fit("names.csv", folder=tmp_path)[1].feature_names_in_.tolist() == [cell, "7"]


@pytest.mark.parametrize("cell", ["1.", ".5", "-1e-3", "+2", " 7", "1E5", "18446744073709551617"])
def test_what_is_a_number_stays_one(cell, tmp_path):
    (tmp_path / "t.csv").write_text(f"a,b\n{cell},2\n{cell},-4\n,1\n")
    assert fit("t.csv", folder=tmp_path)[1].n_features_in_ == 2


def test_columns_are_not_counted_in_other_digits(tmp_path):
    np.save(tmp_path / "t.npy", np.array(ROWS))
    assert "no column '١'" in refused("fit", "t.npy", *FIT, "--drop", "١", folder=tmp_path)


# --- impute changes gaps alone --------------------------------------------------------------------

ODD = [
    ["9007199254740993", "True", "1.50", "+2", "x"],
    ["", "", "", "", "007"],
    ["-3", "False", "1e3", "0.10", "NA"],
    ["5", "TRUE", "007", " 4", ""],
]


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_impute_changes_gaps_alone(header, kind, tmp_path):
    separator = {"csv": ",", "tsv": "\t"}[kind]
    rows = [list("abcde"), *ODD] if header else ODD
    text = "".join(separator.join(row) + "\n" for row in rows)
    (tmp_path / f"t.{kind}").write_text(text)
    options = ["--drop", "e" if header else "4", "--header" if header else "--no-header"]
    fit(f"t.{kind}", *options, folder=tmp_path)
    arguments = ("impute", "m", f"t.{kind}", "-o", f"f.{kind}", *options)
    assert run(*arguments, folder=tmp_path)[0] == 0
    lines = (tmp_path / f"f.{kind}").read_text().splitlines()
    found = [line.split(separator) for line in lines]
    assert len(found) == len(rows)
    for before, after in zip(rows, found, strict=True):
        gaps = [i for i, cell in enumerate(before[:4]) if cell == ""]
        assert [c for i, c in enumerate(after) if i not in gaps] == [
            c for i, c in enumerate(before) if i not in gaps
        ]
        assert all(np.isfinite(float(after[i])) for i in gaps)


def test_impute_keeps_integers_of_parquet(tmp_path):
    big = 9007199254740993
    columns = {"a": [big, None, -5], "b": [True, None, False], "c": [0.1, 2.0, None]}
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    table = table.set_column(2, "c", table["c"].cast(pa.float32()))
    pq.write_table(table, tmp_path / "t.parquet")
    fit("t.parquet", folder=tmp_path)
    code, out, _ = run("impute", "m", "t.parquet", folder=tmp_path)
    found = cells(out)
    assert code == 0 and found[1] == [str(big), "True", "0.1"]
    assert found[3][:2] == ["-5", "False"] and found[2][2] == "2.0"
    text = refused("impute", "m", "t.parquet", "-o", "f.parquet", folder=tmp_path)
    assert "'a' has integers that are not exact as the floats" in text and "CSV" in text
    table = table.set_column(0, "a", pa.array([7, None, -5]))
    pq.write_table(table, tmp_path / "t.parquet")
    assert run("impute", "m", "t.parquet", "-o", "f.parquet", folder=tmp_path)[0] == 0
    filled = pd.read_parquet(tmp_path / "f.parquet")
    assert filled["a"][0] == 7 and filled["c"].dtype == np.float32
    assert filled.notna().to_numpy().all()


def test_impute_keeps_integers_of_arrays(tmp_path):
    big = 9007199254740993
    np.save(tmp_path / "t.npy", np.array([[big, 2], [-999, 4], [-3, -999], [1, 5]]))
    fit("t.npy", "--missing", -999, folder=tmp_path)
    arguments = ("impute", "m", "t.npy", "--missing", -999)
    code, out, _ = run(*arguments, folder=tmp_path)
    found = cells(out)
    assert code == 0 and found[0] == [str(big), "2"] and found[3] == ["1", "5"]
    assert found[1][1] == "4" and found[2][0] == "-3"
    assert "not exact" in refused(*arguments, "-o", "f.npy", folder=tmp_path)


# --- without end ----------------------------------------------------------------------------------


@pytest.fixture
def quickly():
    """It is over soon, and little memory is taken."""
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("kind", ["csv", "tsv", "npy", "npz", "parquet"])
def test_devices_that_never_end(kind, tmp_path, quickly):
    text = refused("fit", "/dev/zero", "--format", kind, *FIT, folder=tmp_path)
    assert "/dev/zero is no table" in text
    assert ("zero bytes" if kind in ("csv", "tsv") else "does not begin") in text
    assert "pipe or a device" in refused("info", "/dev/zero", folder=tmp_path)


class Endless:
    """A file that repeats a text for as long as it is read, and counts what was."""

    def __init__(self, beginning, line):
        self.rest, self.line, self.size = beginning, line, 0

    def read(self, size):
        text = self.rest + self.line * (size // len(self.line) + 1)
        self.rest, self.size = b"", self.size + size
        return text[:size]


@pytest.mark.parametrize(
    ("beginning", "line", "words"),
    [
        (b"", b"a,", "a line of more than 64 MB"),
        (b"", b"a", "a line of more than 64 MB"),
        (b"a,b\n1,2\n", b"1,", "a line of more than 64 MB"),
        (b"a,b\n", b"1,2\n", "it needs more than the 0.3 GB of memory there are"),
        (b"\x93NUMPY", b"1", "it needs more than the 0.3 GB of memory there are"),
    ],
)
def test_streams_that_never_end(beginning, line, words, tmp_path, monkeypatch, quickly):
    memory = 3e8 if "memory" in words else 3e9
    monkeypatch.setattr(inputs, "available_memory", lambda: memory)
    stream = Endless(beginning, line)
    monkeypatch.setattr(inputs, "_chunks", lambda path: inputs._parts(stream))
    kind = "npy" if beginning.startswith(b"\x93") else "csv"
    text = refused("fit", "-", "--format", kind, *FIT, folder=tmp_path)
    assert "standard input is no table" in text and words in text
    assert stream.size < 2e8


def test_standard_input_has_the_same_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "_LONGEST_LINE", 1 << 20)
    text = refused("fit", "-", *FIT, folder=tmp_path, input=b"a," * (3 << 19))
    assert "standard input is no table in CSV: it has a line of more than 1 MB." in text
    assert len(fit("-", folder=tmp_path, input=PLAIN)[1].activations_) == 4


def test_a_pipe_that_nobody_writes_to(tmp_path, monkeypatch, quickly):
    monkeypatch.setattr(inputs, "_PATIENCE", 0.2)
    os.mkfifo(tmp_path / "t.csv")
    text = refused("fit", "t.csv", *FIT, folder=tmp_path)
    assert "t.csv is no table in CSV: it is a pipe that nobody writes to." in text
    assert "a pipe or a device" in refused("info", "t.csv", folder=tmp_path)


@pytest.mark.parametrize("pauses", [(0, 0), (0.3, 0), (0, 0.3)])
def test_a_pipe_is_read_to_its_end(pauses, tmp_path):
    os.mkfifo(tmp_path / "t.csv")

    def write():
        time.sleep(pauses[0])
        with open(tmp_path / "t.csv", "w") as file:
            time.sleep(pauses[1])
            for line in PLAIN.splitlines(keepends=True):
                file.write(line)
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    _, model = fit("t.csv", folder=tmp_path)
    writer.join()
    assert model.activations_.shape == (4, 1)


# --- long names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["n", "é"])
@pytest.mark.parametrize("size", [90, 101, 233, 255])
def test_names_of_outputs_may_be_as_long_as_names_can_be(letter, size, tmp_path):
    def named(ending):
        name = letter * ((size - len(ending)) // len(letter.encode())) + ending
        assert size - 1 <= len(name.encode()) <= size
        return name

    (tmp_path / "t.csv").write_text(PLAIN)
    model = named(".model")
    options = ("--checkpoint", named(".checkpoint"), "--checkpoint-every", 0)
    assert run("fit", "t.csv", "-k", 1, "-o", model, *options, folder=tmp_path)[0] == 0
    outputs = [named(f".{kind}") for kind in ("csv", "tsv", "parquet", "npy", "npz")]
    for out in outputs:
        assert run("transform", model, "t.csv", "-o", out, folder=tmp_path)[0] == 0
    page, state = named(".html"), named(".state")
    assert run("report", model, "-o", page, folder=tmp_path)[0] == 0
    assert run("learn", state, "t.csv", "-k", 1, folder=tmp_path)[0] == 0
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {"t.csv", model, page, state, *outputs}


def test_names_that_are_too_long_are_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text(PLAIN)
    monkeypatch.setattr("seminmf.SkellamSNMF.fit", lambda *_, **__: pytest.fail("work was done"))
    arguments = ("fit", "t.csv", "-k", 1, "-o", "m" * 256)
    assert "File name too long: mmm" in run(*arguments, folder=tmp_path)[2]
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
