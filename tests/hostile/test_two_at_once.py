"""Two processes that work on one file: neither loses what the other has done."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from seminmf import EuclideanSNMF, SkellamSNMF, cli, load, sample_skellam_snmf
from seminmf._estimators import container, locks
from seminmf._estimators.locks import FileLock

SOURCE = str(Path(cli.__file__).parents[1])


def start(code, *arguments, folder):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    """Exit code, standard output and error."""
    out, text = process.communicate(timeout=300)
    return process.returncode, out, text


def names(folder):
    return {path.name for path in Path(folder).iterdir()}


# --- the lock -------------------------------------------------------------------------------------

HOLD = """
import sys
from seminmf._estimators.locks import FileLock
lock = FileLock(sys.argv[1])
print(lock.acquire(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that has the lock on a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "file")],
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline().strip() == b"True"
    yield process
    process.kill()
    process.communicate()


def test_a_lock_is_had_by_one_and_ends_with_its_process(holder, tmp_path):
    lock = FileLock(tmp_path / "file")
    assert not lock.acquire() and not lock.held
    (tmp_path / "link").symlink_to("file")
    assert not FileLock(tmp_path / "link").acquire()  # the same file by another name
    assert FileLock(tmp_path / "other").acquire()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert ".file.lock" in names(tmp_path)
    assert lock.acquire() and lock.held
    lock.release()
    assert ".file.lock" not in names(tmp_path)


def test_a_lock_in_one_process(tmp_path):
    first, second = FileLock(tmp_path / "file"), FileLock(tmp_path / "file")
    assert first.acquire() and not second.acquire()
    first.release()
    first.release()
    assert second.acquire()
    assert not first.acquire() and not first.held
    second.release()
    assert not names(tmp_path)


COUNT = """
import os, sys, time
from seminmf._estimators.locks import FileLock
for _ in range(int(sys.argv[2])):
    lock = FileLock(sys.argv[1])
    while not lock.acquire():
        pass
    with open(sys.argv[1]) as file:
        number = int(file.read())
    with open(sys.argv[1], "w") as file:
        file.write(str(number + 1))
    lock.release()
"""


def test_nothing_is_lost_while_lock_files_come_and_go(tmp_path):
    (tmp_path / "n").write_text("0")
    processes = [start(COUNT, "n", 300, folder=tmp_path) for _ in range(3)]
    assert [ended(process)[0] for process in processes] == [0, 0, 0]
    assert (tmp_path / "n").read_text() == "900"
    assert names(tmp_path) == {"n"}


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_where_nothing_can_be_written_there_is_nothing_to_lock(number, tmp_path, monkeypatch):
    def refuse(path, *_):
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "open", refuse)
    lock = FileLock(tmp_path / "file")
    assert lock.acquire() and not lock.held
    lock.release()


def test_file_systems_without_locks(tmp_path, monkeypatch):
    def refuse(descriptor):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(locks, "_take", refuse)
    lock = FileLock(tmp_path / "file")
    assert lock.acquire() and not lock.held
    assert not names(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        FileLock(tmp_path / "no" / "file").acquire()
    assert caught.value.filename == str(tmp_path / "no" / "file")


# --- fits with one checkpoint ---------------------------------------------------------------------

X, _, _ = sample_skellam_snmf(60, 6, 3, missing=0.1, random_state=0)

FIT = """
import sys
import numpy as np
from seminmf import EuclideanSNMF
from seminmf._estimators.checkpoint import Journal

keep = Journal.keep

def wait(self, run):
    keep(self, run)
    Journal.keep = keep
    print("running", flush=True)
    sys.stdin.readline()

Journal.keep = wait
X = np.load("X.npy")
model = EuclideanSNMF(3, random_state=0, tol=0, max_iter=50)
model.fit(X, checkpoint="c", checkpoint_every=0).save("m")
"""


@pytest.fixture
def running(tmp_path):
    """A fit in a process of its own that is in its first iteration."""
    np.save(tmp_path / "X.npy", X)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", FIT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline().strip() == b"running"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_second_fit_is_told_and_leaves_the_first_alone(running, tmp_path):
    path, part = tmp_path / "c", tmp_path / ".c.0123456789abcdef.part"
    part.touch()  # as if the first were writing at this time
    before = path.read_bytes()
    model = EuclideanSNMF(3, random_state=0, tol=0, max_iter=50)
    with pytest.raises(ValueError, match="c is in use by another fit: wait until") as caught:
        model.fit(X, checkpoint=path)
    assert str(caught.value).endswith("another file for the checkpoint.")
    assert path.read_bytes() == before and part.exists()
    assert not hasattr(model, "components_")
    running.communicate(b"\n")
    assert running.returncode == 0
    # Now it is free, and whoever comes clears away.
    model.fit(X, checkpoint=path)
    np.testing.assert_array_equal(load(tmp_path / "m").components_, model.components_)
    assert names(tmp_path) == {"X.npy", "c", "m"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_killed_fit_does_not_keep_its_checkpoint(running, tmp_path):
    running.send_signal(signal.SIGKILL)
    running.wait()
    model = EuclideanSNMF(3, random_state=0, tol=0, max_iter=50)
    model.fit(X, checkpoint=tmp_path / "c")
    whole = EuclideanSNMF(3, random_state=0, tol=0, max_iter=50).fit(X)
    np.testing.assert_array_equal(whole.components_, model.components_)
    assert names(tmp_path) == {"X.npy", "c"}


@pytest.mark.parametrize("kind", [SkellamSNMF, EuclideanSNMF])
def test_a_fit_that_fails_gives_its_checkpoint_back(kind, tmp_path, monkeypatch):
    """Though its error, and with it all that it had, is still there."""
    model, path = kind(3, random_state=0), tmp_path / "c"
    errors = []
    with monkeypatch.context() as patch:
        patch.setattr(container, "write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError) as caught:
            model.fit(X, checkpoint=path)
        errors.append(caught.value)
    assert not names(tmp_path)
    model.fit(X, checkpoint=path)
    assert names(tmp_path) == {"c"} and "_checkpoint_lock" not in vars(model)


def test_a_checkpoint_that_can_only_be_read_serves_a_finished_fit(tmp_path, monkeypatch):
    model, path = SkellamSNMF(3, random_state=0), tmp_path / "c"
    model.fit(X, checkpoint=path, checkpoint_every=0)
    opened = os.open

    def read_only(name, flags, *rest):
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return opened(name, flags, *rest)

    monkeypatch.setattr(os, "open", read_only)
    again = SkellamSNMF(3, random_state=0).fit(X, checkpoint=path)
    np.testing.assert_array_equal(again.components_, model.components_)


# --- one state ------------------------------------------------------------------------------------

COMMAND = "from seminmf.cli import app; app(prog_name='seminmf')"


def test_all_that_is_said_to_be_learned_is_learned(tmp_path):
    for number in range(4):
        values, _, _ = sample_skellam_snmf(30, 4, 2, random_state=number)
        np.save(tmp_path / f"{number}.npy", values)
    first = ("learn", "state", "0.npy", "-k", 2, "--likelihood", "integer", "--seed", 0)
    assert ended(start(COMMAND, *first, folder=tmp_path))[0] == 0
    lock = FileLock(tmp_path / "state")
    assert lock.acquire()
    processes = [
        start(COMMAND, "learn", "state", f"{number}.npy", "0.npy", folder=tmp_path)
        for number in (1, 2, 3)
    ]
    # All three find that another has it, and wait.
    waiting = [process.stderr.readline() for process in processes]
    assert set(waiting) == {"state is in use by another command, which is waited for.\n"}
    lock.release()
    results = [ended(process) for process in processes]
    said = [line for _, _, text in results for line in text.splitlines() if "learned" in line]
    assert [code for code, _, _ in results] == [0, 0, 0]
    assert load(tmp_path / "state").n_matrices_ == 1 + len(said) == 7
    numbers = sorted(int(line.rsplit(" ", 1)[1]) for line in said)
    assert numbers == [2, 3, 4, 5, 6, 7]
    assert names(tmp_path) == {"state", "0.npy", "1.npy", "2.npy", "3.npy"}


def test_who_waits_can_be_stopped(tmp_path):
    np.save(tmp_path / "0.npy", X)
    lock = FileLock(tmp_path / "state")
    assert lock.acquire()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "learn", "state", "0.npy", "-k", "2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert "waited for" in process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 130
    assert names(tmp_path) == {"0.npy", ".state.lock"}
    lock.release()
