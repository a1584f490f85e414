"""Tables in text as they are found: other separators, commas in numbers, compressed, odd names."""

import bz2
import gzip
import lzma
import warnings

import numpy as np
import pandas as pd
import pytest

from seminmf._commands import compression, formats
from seminmf._commands.dialect import Dialect
from seminmf._commands.options import TableOptions
from seminmf._commands.tables import read_table

FRAME = pd.DataFrame(
    {"name": ["x", "y", "z", "w"], "a": [1.5, -2.25, np.nan, 1e-3], "b": [1.0, 2.5, 3.0, -4.5]}
)
COMPRESS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def read(path, **options):
    return read_table(str(path), TableOptions(**{"id": ["name"], **options}))


@pytest.mark.parametrize(
    ("sep", "decimal"), [(sep, mark) for sep in ",;\t|" for mark in ".," if sep != mark]
)
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_separators_and_commas_are_found(sep, decimal, suffix, tmp_path):
    path = tmp_path / f"t.{suffix}"
    FRAME.to_csv(path, index=False, sep=sep, decimal=decimal)
    usual = {"csv": ",", "tsv": "\t"}[suffix]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        table = read(path)
    np.testing.assert_array_equal(table.X.to_numpy(), FRAME[["a", "b"]].to_numpy())
    assert list(table.ids) == list("xyzw")
    assert bool(found) == (sep != usual or decimal == ",")
    if found:
        assert f"{sep!r} between cells and {decimal!r} in numbers" in str(found[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = read(path, sep="tab" if sep == "\t" else sep, decimal=decimal)
    pd.testing.assert_frame_equal(told.X, table.X)


def test_points_and_commas_together_are_text_and_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("name;a\n1,2;1.5\nb;2.5\n")
    with pytest.warns(UserWarning, match=r"';' between cells and '\.' in numbers"):
        table = read(tmp_path / "t.csv")
    assert list(table.ids) == ["1,2", "b"] and list(table.X["a"]) == [1.5, 2.5]


def test_lines_of_other_lengths_are_no_other_separator(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2,3\n3,4,5\n")
    with pytest.raises(ValueError, match="more cells than there are columns: line 2 has 3"):
        read(tmp_path / "t.csv", id=[])


def test_a_first_line_of_numbers_with_commas_may_be_data(tmp_path):
    (tmp_path / "t.csv").write_text("1,5;2\n2,5;3\n")
    with pytest.raises(ValueError, match="only numbers"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read(tmp_path / "t.csv", id=[])
    table = read(tmp_path / "t.csv", id=[], header=False, sep=";", decimal=",")
    np.testing.assert_array_equal(table.X, [[1.5, 2], [2.5, 3]])


def test_a_filled_table_has_points(tmp_path):
    (tmp_path / "t.csv").write_text("name;a;b\nx;1,5;2\ny;;3\n")
    table = read(tmp_path / "t.csv", sep=";", decimal=",")
    filled = table.filled(np.array([[0.0, 0.0], [7.5, 0.0]]), as_text=True)
    formats.write(str(tmp_path / "o.csv"), filled)
    assert (tmp_path / "o.csv").read_text() == "name,a,b\nx,1.5,2\ny,7.5,3\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sep": "ab"}, "--sep must be one character.*found 'ab'"),
        ({"sep": '"'}, "--sep must be one character"),
        ({"decimal": ";"}, "--decimal must be . or ,.*found ';'"),
        ({"sep": ",", "decimal": ","}, "--sep and --decimal must differ; found ','"),
    ],
)
def test_dialects_that_cannot_be(options, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        read(tmp_path / "nothing.csv", **options)


def test_names_of_separators():
    assert Dialect.of("tab", None).separator == "\t" and Dialect.of("pipe", None).separator == "|"


@pytest.mark.parametrize("kind", compression.KINDS)
@pytest.mark.parametrize("suffix", ["csv", "tsv", "npy", "parquet"])
def test_compressed_tables(kind, suffix, tmp_path):
    if kind == "zst":
        pytest.importorskip("zstandard")
    frame = FRAME[["a", "b"]]
    path = tmp_path / f"t.{suffix}.{kind}"
    formats.write(str(path), frame)
    plain = tmp_path / f"t.{suffix}"
    formats.write(str(plain), frame)
    if kind in COMPRESS:
        module = {"gz": gzip, "bz2": bz2, "xz": lzma}[kind]
        assert module.decompress(path.read_bytes()) == plain.read_bytes()
    first = path.read_bytes()
    formats.write(str(path), frame)
    assert path.read_bytes() == first  # no time of day in it
    np.testing.assert_array_equal(read(path, id=[]).X, read(plain, id=[]).X)


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("damage", [lambda c: c[:-9], lambda c: b"a,b\n1,2\n", lambda c: c[:20]])
def test_damaged_files_are_told(kind, damage, tmp_path):
    content = COMPRESS[kind](("a,b\n" + "1.25,-3.75\n" * 300).encode())
    path = tmp_path / f"t.csv.{kind}"
    path.write_bytes(damage(content))
    with pytest.raises(ValueError, match=rf"t\.csv\.{kind} (cannot be read|is no table)"):
        read(path, id=[])


def test_what_unpacks_to_more_than_the_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 3_000_000))
    monkeypatch.setattr("seminmf._commands.inputs.available_memory", lambda: 10_000_000)
    with pytest.raises(ValueError, match=r"needs more than the 0.0 GB of memory"):
        read(path, id=[])


def test_zst_without_a_package(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    monkeypatch.setitem(__import__("sys").modules, "compression", None)
    with pytest.raises(ValueError, match="pip install zstandard"):
        formats.check_tables([str(tmp_path / "t.csv.zst")], [], False)


def test_columns_of_one_name_are_told_apart(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,a,a.1,a\n1,2,3,4,5\n6,7,8,9,0\n")
    with pytest.warns(UserWarning, match="3 columns have the name 'a'.* 'a', 'a.2', 'a.3'"):
        table = read(tmp_path / "t.csv", id=[])
    assert table.X.columns.tolist() == ["a", "b", "a.2", "a.1", "a.3"]
    np.testing.assert_array_equal(table.X, [[1, 2, 3, 4, 5], [6, 7, 8, 9, 0]])


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("Class", [0, 1, 1, 0], True),
        ("species", [1.0, 2.0, np.nan, 3.0], True),
        ("class", [0.5, 1, 1, 0], False),
        ("class", [1, 1, 1, 1], False),
        ("count", [0, 1, 1, 0], False),
    ],
)
def test_a_column_of_numbered_classes_is_told(name, values, told, tmp_path):
    FRAME.assign(**{name: values}).to_csv(tmp_path / "t.csv", index=False)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read(tmp_path / "t.csv")
    assert [name in str(each.message) and "--label" in str(each.message) for each in found] == (
        [True] if told else []
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(tmp_path / "t.csv", label=[name])
        read_table(str(tmp_path / "t.csv"), TableOptions(id=["name"]), ["a", "b"])
