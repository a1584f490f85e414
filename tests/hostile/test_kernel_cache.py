"""The compiler's cache: damaged, of another process, or nowhere to be written."""

import importlib.util
import os
import pickle
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numba
import pytest

from seminmf._numerics import kernel_cache
from seminmf._numerics.compiled import announced

SOURCE = Path(__file__).parents[2] / "src"
ONCE = "seminmf: compiling for this machine, once; it takes some seconds.\n"
NO_CACHE = (
    "seminmf: compiling for this machine, as each process will, because no folder for the "
    "compiler's cache can be written to; NUMBA_CACHE_DIR may name one.\n"
)
KERNEL = """
from seminmf._numerics.compiled import kernel

@kernel
def double(x):
    return x + x
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for a module with a kernel, whose cache is beside it; nothing has been said yet."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(kernel_cache, "_said", set())
    (tmp_path / "doubling.py").write_text(KERNEL)
    return tmp_path


def new_kernel(folder):
    """The kernel as a new process would see it."""
    spec = importlib.util.spec_from_file_location("doubling", folder / "doubling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def was_loaded(kernel):
    return sum(kernel.stats.cache_hits.values()) == 1


def rename(old, new):
    return lambda content: content.replace(old, new)


def other_byte_at(place):
    def change(content):
        at = int(place * len(content))
        return content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]

    return change


@pytest.mark.parametrize("name", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: b"", id="empty"),
        pytest.param(lambda content: content[: len(content) // 2], id="cut off"),
        pytest.param(lambda content: b"\xffgarbage" * 100, id="garbage"),
        pytest.param(lambda content: pickle.dumps(3), id="another pickle"),
        pytest.param(other_byte_at(0.5), id="a byte"),
        pytest.param(rename(b"numba.core", b"numba.gone"), id="a module that is gone"),
        pytest.param(rename(b"Float", b"Flout"), id="a class that is gone"),
    ],
)
def test_damaged_files_are_made_anew(folder, name, damage):
    _check_that_it_is_made_anew(folder, name, damage)


def test_damaged_machine_code_is_made_anew(folder):
    """All that is around it may be whole."""
    _check_that_it_is_made_anew(folder, "*.nbc", rename(b"text", b"tixt"))


def _check_that_it_is_made_anew(folder, name, damage):
    assert new_kernel(folder)(1.5) == 3.0
    [path] = (folder / "__pycache__").glob(name)
    before = path.read_bytes()
    assert damage(before) != before
    path.write_bytes(damage(before))

    kernel = new_kernel(folder)
    assert kernel(1.5) == 3.0
    assert not was_loaded(kernel)
    kernel = new_kernel(folder)
    assert kernel(1.5) == 3.0
    assert was_loaded(kernel)


def test_a_whole_file_of_a_class_that_is_gone_is_made_anew(folder, monkeypatch):
    kernel = new_kernel(folder)
    kernel(1.5)
    gone = types.ModuleType("gone")
    gone.Thing = type("Thing", (), {"__module__": "gone"})
    files = kernel._cache._cache_file
    [key] = files._load_index()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "gone", gone)
        files.save(key, gone.Thing())

    kernel = new_kernel(folder)
    assert kernel(1.5) == 3.0
    assert not was_loaded(kernel)


def test_a_file_of_another_signature_is_not_taken(folder):
    """Two processes that compile at the same time may choose the same name."""
    kernel = new_kernel(folder)
    kernel(1.5), kernel(1)
    first, second = sorted((folder / "__pycache__").glob("*.nbc"))
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])

    kernel = new_kernel(folder)
    assert kernel(1.5) == 3.0
    assert kernel(1) == 2
    assert not kernel.stats.cache_hits


def test_what_cannot_be_stored_is_used_all_the_same(folder, capsys):
    kernel = new_kernel(folder)
    cache = folder / "__pycache__"
    cache.rmdir()
    cache.touch()
    assert kernel(1.5) == 3.0
    assert kernel(1) == 2
    assert capsys.readouterr().err == (
        f"seminmf: compiled code could not be written to {cache} (File exists), and is compiled "
        "again by the next process.\n"
    )


@pytest.fixture
def no_writable_folder(folder, monkeypatch):
    """What is under a file cannot be written to, not even by the superuser."""
    file = folder / "__pycache__"
    file.touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(file / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(file / "cache"))
    monkeypatch.setenv("HOME", str(file / "home"))


def test_without_a_cache_there_is_one_sentence(folder, no_writable_folder, capsys):
    with announced():
        assert new_kernel(folder)(1.5) == 3.0
        assert new_kernel(folder)(1.5) == 3.0
    assert capsys.readouterr().err == NO_CACHE


def test_with_a_cache_there_is_one_sentence(folder, capsys):
    with announced():
        assert new_kernel(folder)(1.5) == 3.0
        assert new_kernel(folder)(1) == 2
    assert capsys.readouterr().err == ONCE


def run(script, **environment):
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )


def test_the_package_works_where_nothing_can_be_written(tmp_path):
    package = tmp_path / "seminmf"
    shutil.copytree(SOURCE / "seminmf", package, ignore=shutil.ignore_patterns("__pycache__"))
    for directory, _, _ in list(os.walk(package)):
        Path(directory, "__pycache__").touch()
    nowhere = str(package / "__pycache__" / "nowhere")
    script = tmp_path / "script.py"
    script.write_text(
        "import seminmf\n"
        "from seminmf import SkellamSNMF\n"
        "from seminmf.special import exp_digamma\n"
        "print(seminmf.__file__, exp_digamma(1e9))"
    )
    result = run(
        script,
        PYTHONPATH=str(tmp_path),
        NUMBA_CACHE_DIR=nowhere,
        XDG_CACHE_HOME=nowhere,
        HOME=nowhere,
    )
    assert result.stdout.split() == [str(package / "__init__.py"), "999999999.5"]
    assert result.stderr == NO_CACHE


# By itself, numba runs the copy of `evaluate_rates` that was compiled on its own in the first
# process and the one that came with its caller in the second; they differ in some last bits.
CALLER = """
import hashlib
import numpy as np
from seminmf._kernels.em.estep import evaluate_rates
from seminmf._model.likelihoods import LIKELIHOODS
from seminmf._numerics.compiled import kernel

@kernel
def caller(likelihood, x, u0, u1):
    evaluate_rates(likelihood, x, u0, u1)

random = np.random.RandomState(0)
x = random.normal(0, 3, 5000)
u0, u1 = random.gamma(1, 1, (2, 5000))
caller(LIKELIHOODS["real"](), x, u0, u1)
print(hashlib.sha256(np.concatenate([x, u0, u1])).hexdigest())
print(sum(caller.stats.cache_hits.values()))
"""


def test_code_that_is_loaded_gives_the_bits_of_the_process_that_compiled_it(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(CALLER)
    environment = {"PYTHONPATH": str(SOURCE), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    compiling, loading = (run(script, **environment).stdout.split() for _ in range(2))
    assert (compiling[1], loading[1]) == ("0", "1")
    assert compiling[0] == loading[0]


def test_nothing_is_cached_by_other_means():
    assert [path for path in SOURCE.rglob("*.py") if "cache=True" in path.read_text()] == []
