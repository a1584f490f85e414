"""Files from anywhere: refused in a sentence or read, never a crash, never a part of an output."""

import contextlib
import copy
import json
import random
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as serialise
from scipy import sparse
from typer.testing import CliRunner

from seminmf import (
    BayesianSkellamSNMF,
    EuclideanSNMF,
    PriorLearner,
    SkellamSNMF,
    cli,
    load,
    sample_skellam_snmf,
)
from seminmf import io as model_io
from seminmf._commands import formats
from seminmf._estimators import container

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

FILES = Path(__file__).parent / "files"
N_MODELS = 10_000


def data():
    X, _, _ = sample_skellam_snmf(12, 4, 2, missing=0.1, random_state=0)
    return X


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Files of all kinds."""
    folder = tmp_path_factory.mktemp("models")
    frame = pd.DataFrame(data(), columns=["a", "b", "<c>", "δ"])
    learner = PriorLearner(BayesianSkellamSNMF(2, likelihood="integer", random_state=0))
    scaled = SkellamSNMF(2, random_state=0, max_iter=5).fit(data())
    scaled.feature_scale_ = np.arange(1.0, 5.0)
    estimators = [
        SkellamSNMF(2, random_state=0, max_iter=5, atom_shape_prior=np.full((2, 2, 4), 1.5)),
        BayesianSkellamSNMF(2, random_state=0, max_iter=5),
        EuclideanSNMF(2, random_state=0, max_iter=5),
    ]
    found = [
        *(estimator.fit(frame) for estimator in estimators),
        scaled,
        learner.partial_fit(frame),
    ]
    paths = [folder / f"{number}.safetensors" for number in range(len(found))]
    for estimator, path in zip(found, paths, strict=True):
        estimator.save(path)
    return paths


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The bytes with one to four changes of all kinds."""
    found = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(found) + 1)
        kind = chance.randrange(7)
        if kind == 0 and found:
            found[place % len(found)] ^= 1 << chance.randrange(8)
        elif kind == 1 and found:
            found[place % len(found)] = chance.choice(b'\x00\xff"{}[],:-.eE0919\n\t\x80')
        elif kind == 2:
            del found[place:]
        elif kind == 3:
            del found[place : place + chance.randint(1, 30)]
        elif kind == 4:
            found[place:place] = chance.randbytes(chance.randint(1, 30))
        elif kind == 5:
            start = chance.randrange(len(found) + 1)
            found[place:place] = found[start : start + chance.randint(1, 200)]
        else:
            number = chance.choice([0, 1, -1, 2**31, 2**63 - 1, 10**18])
            found[place : place + 8] = struct.pack("<q", number)
    return bytes(found)


def loads_or_refuses(path) -> bool:
    """Whether a file is read; if it is not, the reason is one sentence with its name."""
    try:
        model = load(path)
    except ValueError as error:
        text = str(error)
        assert str(path) in text and text.endswith(".") and "\n" not in text
        return False
    assert type(model).__name__ in model_io._KINDS
    return True


# --- models -------------------------------------------------------------------------------------


def test_changed_bytes_are_refused(models, tmp_path):
    chance, path, n_read = random.Random(0), tmp_path / "model.safetensors", 0
    contents = [model.read_bytes() for model in models]
    for number in range(N_MODELS // 2):
        content = contents[number % len(contents)]
        changed = mutated(content, chance)
        path.write_bytes(changed)
        n_read += loads_or_refuses(path) and changed != content
    # A change of the name of a key that nobody reads is all that could pass.
    assert n_read < 5


VALUES = [
    None,
    True,
    0,
    -1,
    1,
    3,
    10**8,
    10**13,
    2**70,
    0.5,
    -0.0,
    1e308,
    "",
    "nan",
    "inf",
    "real",
    "tolerance",
    "\x00",
    [],
    [1, 2],
    {},
    {"a": 1},
    [[["deep"]]],
]


def strange_value(chance):
    """One of the values; a copy, which may be changed further, even into itself."""
    return copy.deepcopy(chance.choice(VALUES))


def change_header(header, chance):
    """Put a strange value somewhere, or take something away."""
    part = header
    while True:
        key = chance.choice(list(part))
        if isinstance(part[key], dict) and part[key] and chance.random() < 0.8:
            part = part[key]
            continue
        kind = chance.randrange(4)
        if kind == 0:
            del part[key]
        elif kind == 1:
            part[chance.choice(["new", "__class__", key + "_"])] = strange_value(chance)
        else:
            part[key] = strange_value(chance)
        return


def change_arrays(arrays, chance):
    """Other values, shapes or types in an array; or one too few or too many."""
    name = chance.choice(list(arrays))
    array = arrays[name]
    kind = chance.randrange(7)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[chance.choice(["new", f"{name}_", "parameter.tol"])] = array
    elif kind == 2:
        arrays[name] = array.astype(chance.choice([np.float32, np.int64, np.float16, np.uint8]))
    elif kind == 3:
        arrays[name] = array.reshape(-1)[: chance.randint(0, array.size)]
    elif kind == 4:
        arrays[name] = array[None]
    elif kind == 5:
        arrays[name] = np.concatenate([array, array]) if array.ndim else array[None]
    else:
        value = chance.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e-320, 1e300])
        changed = array.astype(np.float64)
        changed.flat[chance.randrange(max(array.size, 1)) if array.size else slice(0)] = value
        arrays[name] = changed.astype(array.dtype) if array.dtype != np.int64 else array


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_changed_content_with_its_checksum_is_refused_or_sound(models, tmp_path):
    chance, path, n_read = random.Random(1), tmp_path / "model.safetensors", 0
    contents = [container.read(model, "seminmf", model_io._names_for) for model in models]
    for number in range(N_MODELS // 2):
        header, arrays = contents[number % len(contents)]
        header, arrays = json.loads(json.dumps(header)), dict(arrays)
        for _ in range(chance.randint(1, 3)):
            if chance.random() < 0.5:
                change_header(header, chance)
            elif arrays:
                change_arrays(arrays, chance)
        write_with_checksum(path, header, arrays)
        if loads_or_refuses(path):
            n_read += 1
            use(load(path))
    assert 0 < n_read < N_MODELS // 4


def write_with_checksum(path, header, arrays):
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    path.write_bytes(serialise(arrays, metadata=container.envelope("seminmf", header, arrays)))


def use(model):
    """What was read is a model that works, or says what is wrong."""
    X = data() if not hasattr(model, "feature_names_in_") else None
    if X is None:
        X = pd.DataFrame(data(), columns=model.feature_names_in_)
    with contextlib.suppress(ValueError):
        if hasattr(model, "transform"):
            assert np.asarray(model.transform(X)).shape == (12, model.n_components)
        else:
            assert model.estimator_.n_components == 2


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=300))
def test_any_bytes_are_refused(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(content)
    assert not loads_or_refuses(path)


@pytest.mark.parametrize("n_values", [10**9, 10**15, 2**62])
def test_promises_of_huge_arrays_are_refused_before_memory_is_taken(n_values, tmp_path):
    header = {
        "__metadata__": container.envelope("seminmf", {}, {}),
        "activations_": {"dtype": "F64", "shape": [n_values], "data_offsets": [0, 8 * n_values]},
    }
    text = json.dumps(header).encode()
    path = tmp_path / "huge.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))
    array = tmp_path / "huge.npy"
    shape = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({n_values}, 2), }}"
    text = shape.ljust(117).encode() + b"\n"
    array.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(64))
    tracemalloc.start()
    assert not loads_or_refuses(path)
    with pytest.raises(ValueError, match=r"huge\.npy is no table in NPY: it promises an array"):
        formats.read(str(array))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**7


@pytest.mark.parametrize("size", [10**8, 10**13])
@pytest.mark.parametrize("part", ["_n_samples", "n_features_in_"])
def test_sizes_of_a_learner_are_believed_only_if_arrays_have_them(part, size, models, tmp_path):
    header, arrays = container.read(models[4], "seminmf", model_io._names_for)
    header["fitted"][part] = size
    path = tmp_path / "learner.safetensors"
    write_with_checksum(path, header, arrays)
    tracemalloc.start()
    assert not loads_or_refuses(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**7


def test_tables_that_are_small_and_say_that_they_are_large(tmp_path):
    empty = tmp_path / "empty.npy"
    np.save(empty, np.empty((0, 2 * 10**7)))
    matrix = sparse.coo_array(([1.0], ([0], [0])), shape=(10**6, 10**6))
    sparse.save_npz(tmp_path / "sparse.npz", matrix)
    tracemalloc.start()
    with pytest.raises(ValueError, match="no cells"):
        formats.read(str(empty))
    for zeros in ("observed", "missing"):
        with pytest.raises(ValueError, match="it needs 8000"):
            formats.read(str(tmp_path / "sparse.npz"), zeros=zeros)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**7


def test_cells_that_are_stored_twice_are_sums(tmp_path):
    matrix = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    sparse.save_npz(tmp_path / "t.npz", matrix)
    observed, missing = (
        formats.read(str(tmp_path / "t.npz"), zeros=z).frame for z in ("observed", "missing")
    )
    np.testing.assert_array_equal(observed, [[0.0, 3.0]])
    np.testing.assert_array_equal(missing, [[np.nan, 3.0]])


def test_arrays_that_are_no_numbers_are_refused(tmp_path):
    path = tmp_path / "t.npy"
    for array in (
        np.zeros(3, dtype=[("a", float)]),
        np.array([["a", "b"]]),
        np.zeros((2, 2), "M8[s]"),
    ):
        np.save(path, array)
        with pytest.raises(ValueError, match="it holds no numbers"):
            formats.read(str(path), missing=["1"])


def test_a_header_of_any_length_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    for length in (0, 1, 8, 100, 2**31, 2**63 - 1, 2**64 - 1):
        path.write_bytes(struct.pack("<Q", length) + b"{" * 64)
        assert not loads_or_refuses(path)


# --- files of today -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FILES.glob("*.safetensors")), ids=lambda path: path.stem)
def test_files_that_were_written_once_are_read_for_ever(path):
    model = load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    assert type(model).__name__ == expected["estimator"]
    X = np.array(expected["X"], dtype=float)
    names = expected["feature_names"]
    if names is not None:
        assert model.feature_names_in_.tolist() == names
        X = pd.DataFrame(X, columns=names)
    if "activations" in expected:
        np.testing.assert_allclose(model.transform(X), expected["activations"], rtol=1e-6)
    else:
        shape = model.estimator_.activation_shape_prior
        np.testing.assert_allclose(shape, expected["activation_shape_prior"], rtol=1e-9)
        assert model.partial_fit(X).n_matrices_ == expected["n_matrices"] + 1


def test_there_is_a_file_of_each_kind():
    kinds = {json.loads(path.read_text())["estimator"] for path in FILES.glob("*.json")}
    assert kinds == set(model_io._KINDS)


# --- tables -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Small tables in all formats, by suffix."""
    folder = tmp_path_factory.mktemp("tables")
    X = data()
    frame = pd.DataFrame(X, columns=["a", "b", "<c>", "δ"])
    for kind in formats.FORMATS:
        formats.write(str(folder / f"table.{kind}"), X if kind.startswith("np") else frame)
    return {kind: (folder / f"table.{kind}").read_bytes() for kind in formats.FORMATS}


@pytest.mark.parametrize("n_tables", [500, pytest.param(2_000, marks=pytest.mark.slow)])
def test_changed_tables_are_refused_or_read(models, tables, tmp_path, n_tables):
    chance, runner = random.Random(2), CliRunner()
    named, plain = str(models[0]), str(models[3])
    out = tmp_path / "out.csv"
    codes = {0: 0, 2: 0}
    for number in range(n_tables):
        kind = formats.FORMATS[number % len(formats.FORMATS)]
        path = tmp_path / f"table.{kind}"
        path.write_bytes(mutated(tables[kind], chance))
        model = plain if kind.startswith("np") else named
        result = runner.invoke(cli.app, ["impute", model, str(path), "-o", str(out)])
        assert result.exit_code in codes, (kind, result.output, result.exception)
        codes[result.exit_code] += 1
        assert {file.name for file in tmp_path.iterdir()} <= {path.name, out.name}
        if result.exit_code == 2:
            assert result.stderr.startswith("seminmf: ") and not out.exists()
        else:
            filled = formats.read(str(out), header=model is named).frame
            features = filled[["a", "b", "<c>", "δ"]] if model is named else filled
            assert np.isfinite(np.asarray(features, dtype=float)).all()
            out.unlink()
        path.unlink()
    assert min(codes.values()) > n_tables // 20


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.text(alphabet="0123456789,.-+eE\"\n\t naNinf'", max_size=200).map(str.encode),
    ),
    kind=st.sampled_from(formats.FORMATS),
)
def test_any_table_is_refused_or_read(content, kind, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"any.{kind}"
    path.write_bytes(content)
    try:
        table = formats.read(str(path)).frame
    except ValueError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:
        assert table.ndim == 2
