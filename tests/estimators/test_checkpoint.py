"""Checkpoints: a fit that was stopped ends as if it had not been."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as serialise
from sklearn.exceptions import ConvergenceWarning

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, load, sample_skellam_snmf
from seminmf._data.dense import DenseSource
from seminmf._estimators import checkpoint, container

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data(dtype=np.float64, M=1, n_samples=60):
    X, _, _ = sample_skellam_snmf(n_samples, 6, 3, M=M, missing=0.1, random_state=0)
    return X.astype(dtype)


# All algorithms, each with the states that it remembers; several runs of the loop in a fit.
MODELS = {
    "newton": SkellamSNMF(3, random_state=0, n_init=3),
    "em": SkellamSNMF(3, solver="em", acceleration=None, max_iter=40, random_state=1, n_init=2),
    "squarem": SkellamSNMF(3, solver="em", likelihood="integer", max_iter=40, random_state=2),
    "parabolic": SkellamSNMF(3, solver="em", acceleration="parabolic", init="svd", max_iter=40),
    "bayes": BayesianSkellamSNMF(3, random_state=3, max_iter=60, n_init=2, dispersion=0.0),
    "bayes with noise": BayesianSkellamSNMF(3, random_state=3, max_iter=60, n_init=2),
    "map": BayesianSkellamSNMF(3, random_state=3, max_iter=60, init="map", noise=None),
    "prior": BayesianSkellamSNMF(3, likelihood="integer", init="prior", max_iter=30),
    "hals": EuclideanSNMF(3, random_state=4, n_init=2, tol=1e-6),
    "multiplicative": EuclideanSNMF(3, solver="multiplicative", random_state=4, max_iter=60),
    "newton in batches": SkellamSNMF(
        3, dispersion=0.0, batch_size=7, random_state=5, n_init=2, max_iter=6, tol=0, n_jobs=1
    ),
    "em in batches": SkellamSNMF(
        3,
        dispersion=0.0,
        solver="em",
        batch_size=25,
        random_state=5,
        n_init=2,
        max_iter=5,
        tol=0,
        n_jobs=1,
    ),
    "bayes in batches": BayesianSkellamSNMF(
        3, dispersion=0.0, batch_size=20, random_state=5, n_init=2, max_iter=5, tol=0, n_jobs=1
    ),
}
IN_BATCHES = [name for name in MODELS if "batches" in name]


class Killed(BaseException):
    """As sudden as the end of the process."""


def killed_fit(model, X, path, monkeypatch, after):
    """A fit that ends without a word, when it has written its file `after` times."""
    written = []
    write = container.write

    def write_and_die(*arguments):
        write(*arguments)
        written.append(arguments)
        if len(written) == after:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(container, "write", write_and_die)
        try:
            model.fit(X, checkpoint=path, checkpoint_every=0)
        except Killed:
            return True
    return False


def assert_same(model, other):
    attributes = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert attributes.keys() == {name for name in vars(other) if name.endswith("_")}
    assert len(attributes) > 5
    for name, value in attributes.items():
        np.testing.assert_array_equal(getattr(other, name), value, err_msg=name)
        assert np.asarray(value).dtype == np.asarray(getattr(other, name)).dtype


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_goes_on_to_the_same_end(name, dtype, tmp_path, monkeypatch):
    X, model, path = data(dtype), MODELS[name], tmp_path / "checkpoint"
    np.random.seed(5)  # where random_state is None
    state = np.random.get_state()
    whole = type(model)(**model.get_params()).fit(X)
    after, n_kills = 1, 0
    np.random.set_state(state)
    while killed_fit(model, X, path, monkeypatch, after):
        n_kills += 1
        after = after % 7 + 2
    assert n_kills >= 3
    assert_same(whole, model)


@pytest.mark.parametrize("name", ["newton", "bayes", "hals"])
def test_a_finished_fit_is_done_again_in_no_time(name, tmp_path, monkeypatch):
    X, model, path = data(), MODELS[name], tmp_path / "checkpoint"
    model.fit(X, checkpoint=path, checkpoint_every=0)
    content = path.read_bytes()
    steps = []

    class Steps(checkpoint.Journal):
        def keep(self, run):
            steps.append(run)

    monkeypatch.setattr("seminmf._estimators.frame.Journal", Steps)
    again = type(model)(**model.get_params()).fit(X, checkpoint=path)
    assert_same(model, again)
    assert not steps
    assert path.read_bytes() == content


def test_ctrl_c_is_noted_and_the_fit_goes_on(tmp_path, monkeypatch):
    X, path = data(), tmp_path / "checkpoint"
    for name in ("newton", "bayes", "hals"):
        model = MODELS[name]
        whole = type(model)(**model.get_params()).fit(X)
        for interrupted_at in (1, 8, 30):
            keep, calls = checkpoint.Journal.keep, []

            def interrupted(self, run, keep=keep, calls=calls, at=interrupted_at):
                keep(self, run)
                calls.append(run)
                if len(calls) == at:
                    raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(checkpoint.Journal, "keep", interrupted)
                model.fit(X, checkpoint=path, checkpoint_every=1e9)
            assert len(calls) < 2 * interrupted_at or interrupted_at == 1
        model.fit(X, checkpoint=path)
        assert_same(whole, model)
        path.unlink()


@pytest.mark.parametrize("name", IN_BATCHES)
def test_ctrl_c_in_an_epoch_is_noted_and_the_fit_goes_on(name, tmp_path, monkeypatch):
    """In the first epoch, in a later one and in the second start; after some batches each time."""
    X, path, model = data(), tmp_path / "checkpoint", MODELS[name]
    whole = type(model)(**model.get_params()).fit(X)
    n_batches = -(-len(X) // model.batch_size)
    batches = DenseSource.batches

    def interrupted_after(n_batches):
        """Batches of samples, and Ctrl-C when so many have been learned from."""
        learned = itertools.count(1)

        def interrupted(self, size, random):
            for batch in batches(self, size, random):
                yield batch
                if next(learned) == n_batches:
                    raise KeyboardInterrupt

        return interrupted

    for n_epochs, n_iter in ((0, 0), (2, 2), (model.max_iter + 1, 1)):
        stop = interrupted_after(n_batches * n_epochs + n_batches // 2)
        with monkeypatch.context() as patch:
            patch.setattr(DenseSource, "batches", stop)
            with pytest.warns(ConvergenceWarning, match=f"Interrupted after {n_iter} iterations"):
                model.fit(X, checkpoint=path, checkpoint_every=1e9)
    assert_same(whole, type(model)(**model.get_params()).fit(X, checkpoint=path))


def test_a_generator_goes_on_too(tmp_path, monkeypatch):
    X, path = data(), tmp_path / "checkpoint"
    whole = SkellamSNMF(3, random_state=np.random.RandomState(1), n_init=2).fit(X)
    killed = SkellamSNMF(3, random_state=np.random.RandomState(1), n_init=2)
    assert killed_fit(killed, X, path, monkeypatch, 5)
    resumed = SkellamSNMF(3, random_state=np.random.RandomState(999), n_init=2)
    assert_same(whole, resumed.fit(X, checkpoint=path))
    strange = np.random.RandomState(np.random.PCG64(1))
    with pytest.raises(ValueError, match="MT19937"):
        SkellamSNMF(3, random_state=strange).fit(X, checkpoint=tmp_path / "other")


def test_start_values_weights_and_frozen_components(tmp_path, monkeypatch):
    X, path = data(), tmp_path / "checkpoint"
    given = {
        "atoms": np.abs(np.random.RandomState(0).normal(size=(2, 3, 6))),
        "frozen": [0],
        "sample_weight": np.arange(1.0, 61.0),
    }
    whole = SkellamSNMF(3, random_state=0).fit(X, **given)
    assert killed_fit(_Given(SkellamSNMF(3, random_state=0), given), X, path, monkeypatch, 6)
    assert_same(whole, SkellamSNMF(3, random_state=0).fit(X, checkpoint=path, **given))
    for change in ({"frozen": [1]}, {"sample_weight": None}, {"atoms": 1 + given["atoms"]}):
        with pytest.raises(ValueError, match="other start values"):
            SkellamSNMF(3, random_state=0).fit(X, checkpoint=path, **given | change)


class _Given:
    def __init__(self, model, given):
        self.model, self.given = model, given

    def fit(self, X, **options):
        return self.model.fit(X, **self.given, **options)


# --- refusals -----------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path):
    path = tmp_path / "checkpoint"
    SkellamSNMF(3, random_state=0, max_iter=30).fit(data(), checkpoint=path, checkpoint_every=0)
    return path


@pytest.mark.parametrize(
    ("model", "X", "reason"),
    [
        (SkellamSNMF(3, random_state=0, max_iter=30), data()[:-1], "other data"),
        (SkellamSNMF(3, random_state=0, max_iter=30), data(np.float32), "other data"),
        (SkellamSNMF(3, random_state=0, max_iter=30), data() + 1e-9, "other data"),
        (SkellamSNMF(3, random_state=0, max_iter=31), data(), "max_iter=30, not 31"),
        (SkellamSNMF(3, random_state=1, max_iter=30), data(), "random_state=0, not 1"),
        (SkellamSNMF(3, max_iter=30), data(), "random_state=0, not None"),
        (SkellamSNMF(2, random_state=0, max_iter=30), data(), "n_components=3, not 2"),
        (
            SkellamSNMF(3, random_state=0, max_iter=30, atom_shape_prior=[[[1.5]]]),
            data(),
            "atom_shape_prior=1.0, not",
        ),
        (EuclideanSNMF(3, random_state=0, max_iter=30), data(), "no checkpoint of this fit"),
    ],
)
def test_other_fits_are_refused(model, X, reason, kept):
    content = kept.read_bytes()
    with pytest.raises(ValueError, match=reason) as caught:
        model.fit(X, checkpoint=kept)
    assert str(kept) in str(caught.value) and str(caught.value).endswith(".")
    assert kept.read_bytes() == content
    assert not hasattr(model, "activations_")


def test_other_threads_and_progress_are_no_other_fit(kept, capsys):
    whole = SkellamSNMF(3, random_state=0, max_iter=30).fit(data())
    other = SkellamSNMF(3, random_state=0, max_iter=30, n_jobs=1, verbose=1)
    assert_same(whole, other.fit(data(), checkpoint=kept))


def test_damaged_files_are_refused(kept):
    content = kept.read_bytes()
    for damaged in (b"", b"text", content[:-1], content[: len(content) // 2]):
        kept.write_bytes(damaged)
        with pytest.raises(ValueError, match="no checkpoint of this fit"):
            SkellamSNMF(3, random_state=0, max_iter=30).fit(data(), checkpoint=kept)
    chance = random.Random(0)
    for _ in range(200):
        place = chance.randrange(len(content))
        flipped = content[place] ^ (1 << chance.randrange(8))
        kept.write_bytes(content[:place] + bytes([flipped]) + content[place + 1 :])
        with pytest.raises(ValueError, match="no checkpoint of this fit"):
            SkellamSNMF(3, random_state=0, max_iter=30).fit(data(), checkpoint=kept)


def test_a_model_is_no_checkpoint(tmp_path):
    model = SkellamSNMF(3, random_state=0).fit(data())
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="its format is 'seminmf'"):
        model.fit(data(), checkpoint=tmp_path / "model")


def test_strange_content_is_refused(kept):
    with safe_open(kept, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in set(file.keys())}
        header = json.loads(file.metadata()["seminmf"])["header"]
    changes = [
        lambda h, a: h.update(fit=[]),
        lambda h, a: h.update(runs=[{}]),
        lambda h, a: h.update(runs=3),
        lambda h, a: h["runs"][0].update(kinds={}),
        lambda h, a: h["runs"][0].update(reason="tired"),
        lambda h, a: h["runs"][0].update(kinds=None),
        lambda h, a: h.update(random={}),
        lambda h, a: a.pop("random"),
        lambda h, a: a.pop("0/objectives"),
        lambda h, a: a.update({"0/state.atoms": np.ones((2, 3, 7))}),
        lambda h, a: a.update({"0/state.atoms": np.ones(3)}),
    ]
    for change in changes:
        changed, others = json.loads(json.dumps(header)), dict(arrays)
        change(changed, others)
        metadata = container.envelope(checkpoint.FORMAT, changed, others)
        kept.write_bytes(serialise(others, metadata=metadata))
        with pytest.raises(ValueError, match="no checkpoint of this fit"):
            SkellamSNMF(3, dispersion=0.0, random_state=0, max_iter=30).fit(data(), checkpoint=kept)


@pytest.mark.parametrize("every", [-1, "often", np.nan, np.inf, None, True])
def test_strange_times_are_refused(every, tmp_path):
    with pytest.raises(ValueError, match="checkpoint_every must be a number of seconds"):
        SkellamSNMF(3).fit(data(), checkpoint=tmp_path / "file", checkpoint_every=every)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_found_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(SkellamSNMF, "_run", lambda *_: pytest.fail("work was done"))
    with pytest.raises(FileNotFoundError):
        SkellamSNMF(3).fit(data(), checkpoint=tmp_path / "no" / "folder")


# --- real kills ---------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, sample_skellam_snmf
from seminmf._estimators.checkpoint import Journal

kind, path, out = sys.argv[1:]
X, _, _ = sample_skellam_snmf(400, 12, 4, missing=0.2, random_state=0)
model = {
    "newton": SkellamSNMF(4, random_state=0, n_init=3, tol=0, max_iter=300),
    "bayes": BayesianSkellamSNMF(4, random_state=0, tol=0, max_iter=300),
    "hals": EuclideanSNMF(4, random_state=0, n_init=3, tol=0, max_iter=1500),
}[kind]
steps = 0
keep = Journal.keep


def counted(self, run):
    global steps
    steps += 1
    keep(self, run)


Journal.keep = counted
print("ready", flush=True)
model.fit(X, checkpoint=path, checkpoint_every=0.01)
model.save(out)
print(steps)
"""


def start(kind, path, out):
    environment = {**os.environ, "PYTHONPATH": str(Path(checkpoint.__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, kind, str(path), str(out)],
        stdout=subprocess.PIPE,
        env=environment,
    )
    process.stdout.readline()
    return process


def finished(process):
    """Number of steps of a process that ends as it should."""
    text, _ = process.communicate()
    assert process.returncode == 0
    return int(text)


def kill_at_random(kind, folder, n_kills, seed):
    """Number of kills that hit; the result must be that of a run without any."""
    path, out, expected = (folder / f"{kind}.{end}" for end in ("checkpoint", "out", "expected"))
    begin = time.monotonic()
    n_steps = finished(start(kind, path, expected))
    path.unlink()
    duration = time.monotonic() - begin
    chance, hits = random.Random(seed), 0
    while hits < n_kills or not path.exists():
        process = start(kind, path, out)
        time.sleep(chance.uniform(0, duration / 2))
        process.send_signal(signal.SIGKILL)
        if process.wait() != 0:
            hits += 1
            continue
        # It was through before: a result, from which the next round starts anew.
        assert_same(load(expected), load(out))
        path.unlink()
    # None are left if the last kill hit what comes after the iterations.
    assert finished(start(kind, path, out)) < n_steps
    assert_same(load(expected), load(out))
    # A kill may hit the writing of the model; what is left of a checkpoint is cleared away.
    left = {file.name for file in folder.iterdir()} - {path.name, out.name, expected.name}
    assert all(name.startswith(f".{out.name}.") for name in left)
    return hits


def test_killed_processes_go_on(tmp_path):
    assert kill_at_random("bayes", tmp_path, n_kills=3, seed=0) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n_kills"), [("newton", 34), ("bayes", 33), ("hals", 33)])
def test_a_hundred_kills(kind, n_kills, tmp_path):
    assert kill_at_random(kind, tmp_path, n_kills, seed=1) == n_kills
