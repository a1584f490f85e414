"""Data in chunks, on threads, in processes and on a cluster: the same fit everywhere."""

import math
import multiprocessing
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby, pairwise

import dask
import dask.array as da
import numpy as np
import pytest
import workers
from dask.sizeof import sizeof
from hypothesis import given
from hypothesis import strategies as st
from kinds import stored
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, load, select_n_components
from seminmf._algorithms import em
from seminmf._data.chunked import executor as chunked_executor
from seminmf._data.chunked import source as chunked_source
from seminmf._data.chunked.workers import share_out, together, workers_of
from seminmf._data.summary import ANY_NUMBERS
from seminmf._estimators import checkpoint

distributed = pytest.importorskip("distributed")

FIXED = {
    "em": SkellamSNMF(3, solver="em", acceleration=None, max_iter=8, random_state=0),
    "vbem": BayesianSkellamSNMF(
        3, posterior="mean-field", acceleration=None, max_iter=8, random_state=0
    ),
}
FULL = {
    "newton": SkellamSNMF(2, tol=1e-7, random_state=0),
    "squarem": SkellamSNMF(2, solver="em", random_state=0),
    "vbem": BayesianSkellamSNMF(
        2, posterior="mean-field", tol=1e-8, max_iter=20_000, random_state=0
    ),
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes with one thread each."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        memory_limit=None,
        worker_dashboard_address=None,
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def table(seed=0, shape=(80, 12), likelihood="real"):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, 5.0, (shape[0], 2)) @ rng.normal(0.0, 1.0, (2, shape[1]))
    X += rng.normal(size=shape)
    X = X.round() if likelihood == "integer" else X
    X[rng.random(shape) < 0.15] = np.nan
    return X


def chunks(X, size=30):
    return da.from_array(X, chunks=(size, -1))


def trace(model):
    return model.objectives_ if hasattr(model, "objectives_") else model.lower_bounds_


# --- on a cluster ---


@pytest.mark.parametrize("likelihood", ["real", "integer"])
@pytest.mark.parametrize("name", FIXED)
def test_fixed_iterations_on_a_cluster(client, name, likelihood):
    X = table(likelihood=likelihood)
    here = clone(FIXED[name]).set_params(likelihood=likelihood).fit(X)
    there = clone(here).fit(chunks(X))
    assert isinstance(there.activations_, da.Array)
    assert there.activations_.chunks == ((30, 30, 20), (3,))
    assert_allclose(there.activations_.compute(), here.activations_, rtol=1e-9, atol=1e-12)
    assert_allclose(there.atoms_, here.atoms_, rtol=1e-9, atol=1e-15)
    assert_allclose(trace(there), trace(here), rtol=1e-9)


@pytest.mark.slow
def test_full_fit_on_a_cluster(client):
    X = table()
    here, there = (clone(FULL["newton"]).fit(data) for data in (X, chunks(X)))
    assert here.converged_ and there.converged_
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-6)
    assert np.min(np.diff(there.objectives_)) >= 0


@pytest.mark.parametrize("name", FULL)
def test_accelerated(name):
    """Rounding grows with the iterations of an extrapolation: the objective is the same at the end,
    or after some of them."""
    X = table(shape=(40, 8))
    model = clone(FULL[name])
    if name == "squarem":
        model.set_params(tol=0, max_iter=12)
    with dask.config.set(scheduler="synchronous"):
        here, there = (clone(model).fit(data) for data in (X, chunks(X)))
    assert here.converged_ == there.converged_ == (name != "squarem")
    assert trace(there)[-1] == pytest.approx(trace(here)[-1], rel=1e-6)
    assert np.min(np.diff(trace(there))) >= -1e-9 * abs(trace(there)[-1])


def test_what_comes_after_the_fit_stays_there(client):
    X, other = table(), table(1)
    settings = {"max_iter": 30, "random_state": 0}
    for model in (SkellamSNMF(2, **settings), BayesianSkellamSNMF(2, dispersion=0.0, **settings)):
        here = clone(model).fit(X)
        there = clone(model).fit(chunks(X))
        for name in ("atoms_", "dispersion_", "atom_shape_"):
            if hasattr(here, name):
                setattr(there, name, getattr(here, name))
        for ask in ("transform", "predict", "impute"):
            answer = getattr(there, ask)(chunks(other))
            assert isinstance(answer, da.Array), ask
            # A minimum is flat: it is known to about the root of the rounding of its value. What
            # cancels to a small number has the rounding of the numbers that it is the sum of.
            expected = getattr(here, ask)(other)
            assert_allclose(answer.compute(), expected, rtol=1e-7, atol=1e-7 * np.ptp(expected))
        assert isinstance(there.amounts_, da.Array)
        assert there.r2(chunks(other)) == pytest.approx(here.r2(other), rel=1e-9)
        assert there.score(chunks(other)) == pytest.approx(here.score(other), rel=1e-9)
        cells = [0, 79, 3], [1, 2, 11]
        assert_allclose(
            there.predict_cells(*cells), (there.activations_ @ there.components_).compute()[cells]
        )
        labels = clone(model).fit_predict(chunks(X))
        assert isinstance(labels, da.Array)
        assert np.mean(labels.compute() == here.predict(X)) > 0.9


def test_save_brings_the_activations_here(client, tmp_path):
    X = table()
    model = clone(FIXED["vbem"]).fit(chunks(X))
    model.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    assert_array_equal(loaded.activations_, model.activations_.compute())
    assert_allclose(loaded.transform(X), model.transform(chunks(X)).compute(), rtol=1e-9)


def test_a_scheduler_does_not_keep_a_whole_fit(cluster, client, monkeypatch):
    """Arrays come from all that was told since the fit began, unless they are made anew."""
    monkeypatch.setattr(chunked_executor, "_MOST_KEPT", 1 << 16)
    X = table()
    model = clone(FIXED["em"]).set_params(max_iter=40)
    n_tasks = []

    def step(problem, state):
        n_tasks.append(len(cluster.scheduler.tasks))
        return plain_step(problem, state)

    plain_step = em.step
    monkeypatch.setattr(em, "step", step)
    found = clone(model).fit(client.persist(chunks(X)))
    assert max(n_tasks[20:]) < max(n_tasks[:20]) + 40
    monkeypatch.undo()
    assert_allclose(found.atoms_, model.fit(X).atoms_, rtol=1e-9)


def test_chunks_are_shared_out_again(client, monkeypatch):
    """When workers have come or gone: here it seems that one has, and has come back."""
    X = table()
    data = client.persist(chunks(X))
    source, _ = chunked_source.ChunkedSource(data, "missing").check(ANY_NUMBERS, fitted=False)
    with source.executor(None) as executor:
        addresses = sorted(executor._workers)
        everyone = chunked_executor.current_workers()
        alone = {addresses[0]: everyone[addresses[0]]}
        for present in (alone, everyone):
            monkeypatch.setattr(chunked_executor, "current_workers", lambda now=present: now)
            executor._share_out_again()
            distributed.wait(distributed.futures_of(executor._chunks))
            homes = client.who_has(distributed.futures_of(executor._chunks))
            held = [homes[chunk.key][0] for chunk in executor._chunks]
            assert held == executor._homes
            counts = [held.count(address) for address in present]
            assert sum(counts) == len(held) and max(counts) - min(counts) <= 1
        assert source._chunks is executor._chunks


@pytest.mark.slow
@pytest.mark.parametrize("name", FIXED)
def test_a_killed_worker_costs_time_only(tmp_path, name):
    """A worker is killed in the middle of a fit, and its chunks are done again by others."""
    X = table()
    expected = clone(FIXED[name]).set_params(max_iter=40).fit(X)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killer = multiprocessing.get_context("spawn").Process(
            target=workers.kill_soon, args=(pids[0], str(tmp_path / "killed"))
        )
        killer.start()
        data = chunks(X, 20).map_blocks(workers.slow, 0.05, dtype=float)
        model = clone(FIXED[name]).set_params(max_iter=40)
        start = time.monotonic()
        while not (tmp_path / "killed").exists():  # until the worker dies in the middle of one
            assert time.monotonic() - start < 60
            model = clone(model).fit(data)
        killer.join()
    assert_allclose(model.atoms_, expected.atoms_, rtol=1e-9, atol=1e-15)


# --- on threads and in processes ---


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_other_schedulers(scheduler):
    X = table()
    # Dask would start new processes for each computation.
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        own = {"pool": pool} if scheduler == "processes" else {}
        for model in FIXED.values():
            here = clone(model).set_params(max_iter=3).fit(X)
            with dask.config.set(scheduler=scheduler, num_workers=2, **own):
                there = clone(here).fit(chunks(X))
                assert_allclose(there.activations_.compute(), here.activations_, rtol=1e-9)


def test_data_that_do_not_fit_are_read_again(monkeypatch):
    X = table()
    model = clone(FIXED["em"]).set_params(dispersion=0.0)  # which looks at no samples beforehand
    expected = clone(model).fit(X).atoms_
    reads = []

    def read(block):
        reads.append(1)
        return block

    data = chunks(X).map_blocks(read, dtype=float, meta=np.empty((0, 0)))
    for fits, n_reads in ((True, 3), (False, 3 * 10)):
        reads.clear()
        monkeypatch.setattr(chunked_source, "_fits", lambda n_bytes, fits=fits: fits)
        with dask.config.set(scheduler="synchronous"):
            assert_allclose(clone(model).fit(data).atoms_, expected, rtol=1e-9)
        assert len(reads) == n_reads if fits else len(reads) >= n_reads


def test_sparse_chunks():
    X = table()
    chunked = da.from_array(X, chunks=(30, -1)).map_blocks(stored, meta=stored(X[:0]))
    for model in FIXED.values():
        expected = clone(model).fit(X)
        found = clone(model).fit(chunked)
        assert_allclose(found.atoms_, expected.atoms_, rtol=1e-9, atol=1e-12)
        activations = found.activations_.compute()
        assert_allclose(activations, expected.activations_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("init", ["random", "kmeans", "svd", "prior"])
def test_starts(init):
    X = table()
    model = SkellamSNMF(2, init=init, max_iter=2, solver="em", acceleration=None, random_state=0)
    expected = model.fit(X).atoms_
    assert_allclose(model.fit(chunks(X)).atoms_, expected, rtol=1e-9)


def test_own_priors_weights_and_starts():
    """What users give for single samples goes to their chunks."""
    X = table()
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, len(X)).astype(float)
    prior = {
        "activation_shape_prior": rng.uniform(1.0, 3.0, (len(X), 3)),
        "activation_rate_prior": rng.uniform(0.1, 1.0, (len(X), 3)),
    }
    start = rng.gamma(2.0, 3.0, (len(X), 3))
    for model, name in ((FIXED["em"], "activations"), (FIXED["vbem"], "activation_shape")):
        model = clone(model).set_params(**prior)
        options = {"sample_weight": weights, name: start}
        expected = clone(model).fit(X, **options)
        found = clone(model).fit(chunks(X), **options)
        assert_allclose(found.atoms_, expected.atoms_, rtol=1e-9)
        assert_allclose(found.activations_.compute(), expected.activations_, rtol=1e-9)


@pytest.mark.parametrize("name", ["newton", "squarem"])
def test_checkpoint(tmp_path, name):
    """A fit that goes on ends where it would have ended."""
    X = chunks(table())
    model = clone(FULL[name]).set_params(tol=0, max_iter=25)
    expected = clone(model).fit(X)
    path = tmp_path / "checkpoint"

    class Stop(Exception):
        pass

    keep, calls = checkpoint.Journal.keep, []

    def stopping(self, run):
        keep(self, run)
        calls.append(1)
        if len(calls) == 12:
            raise Stop

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stop):
        patch.setattr(checkpoint.Journal, "keep", stopping)
        clone(model).fit(X, checkpoint=path, checkpoint_every=0)
    found = clone(model).fit(X, checkpoint=path)
    assert_array_equal(found.objectives_, expected.objectives_)
    assert_array_equal(found.activations_.compute(), expected.activations_.compute())
    with pytest.raises(ValueError, match="data"):
        clone(model).fit(chunks(table(1)), checkpoint=path)


def test_selection():
    X = table(likelihood="integer")
    counts = BayesianSkellamSNMF(likelihood="integer", max_iter=50)
    options = {"estimator": counts, "criterion": "heldout", "n_folds": 2, "random_state": 0}
    expected = select_n_components(X, [1, 2], **options).table
    found = select_n_components(chunks(X), [1, 2], **options).table
    assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-9)


# --- errors ---


def test_bad_chunks():
    X = table()
    model = clone(FIXED["em"]).fit(X)
    before = model.atoms_.copy()
    with pytest.raises(ValueError, match="chunked over samples only; found 2 chunks over features"):
        model.fit(da.from_array(X, chunks=(30, 6)))
    unknown = chunks(X)[chunks(X)[:, 0] > 0]
    with pytest.raises(ValueError, match="chunks of known sizes; found unknown ones"):
        model.fit(unknown)
    with pytest.raises(ValueError, match=r"shape \(80,\)"):
        model.fit(chunks(X)[:, 0])
    with pytest.raises(ValueError, match="5 features, but SkellamSNMF is expecting 12"):
        model.transform(chunks(X[:, :5]))
    assert_array_equal(model.atoms_, before)
    assert model.fit(unknown.compute_chunk_sizes()).atoms_.shape == (2, 3, 12)


def test_bad_values():
    X = table()
    X[65, 7] = np.inf
    model = clone(FIXED["em"])
    with pytest.raises(ValueError, match=r"finite.*found inf in row 65, column 7"):
        model.fit(chunks(X))
    X[65, 7] = 0.5
    X[:] = np.where(np.arange(80)[:, None] == 65, X, np.round(X))
    with pytest.raises(ValueError, match=r"integers.*in row 65"):
        model.set_params(likelihood="integer").fit(chunks(X))
    with pytest.raises(ValueError, match="at least one observed cell"):
        model.fit(chunks(np.full((6, 2), np.nan), 2))
    with pytest.raises(TypeError, match="X must be in memory for EuclideanSNMF; found a Dask"):
        EuclideanSNMF(2).fit(chunks(X))


def test_a_closed_client(cluster):
    X = table()
    client = distributed.Client(cluster)
    data = client.persist(chunks(X))
    distributed.wait(data)
    client.close()
    with pytest.raises(ValueError, match=r"cluster that can be reached; found .* client is closed"):
        clone(FIXED["em"]).fit(data)


@pytest.mark.parametrize("kind", [np.asarray, stored])
def test_schedulers_know_the_size_of_chunks(kind):
    """Chunks that are taken for small are sent around."""
    X = table()
    chunked = da.from_array(X, chunks=(30, -1)).map_blocks(kind, meta=kind(X[:0]))
    chunks = dask.compute(*chunked_source.ChunkedSource(chunked, "missing")._opened(ANY_NUMBERS))
    assert sum(map(sizeof, chunks)) >= 8 * np.count_nonzero(~np.isnan(X))


@given(data=st.data(), n_chunks=st.integers(1, 40), n_workers=st.integers(1, 5))
def test_chunks_are_shared_out_evenly(data, n_chunks, n_workers):
    threads = {f"w{n}": data.draw(st.integers(1, 4)) for n in range(n_workers)}
    names = st.sets(st.sampled_from([*threads, "gone"]), max_size=2)
    holders = data.draw(st.lists(names, min_size=n_chunks, max_size=n_chunks))
    homes = share_out(holders, threads)
    share = n_chunks / sum(threads.values())
    for worker, n_threads in threads.items():
        assert homes.count(worker) <= math.ceil(share * n_threads)
    assert set(homes) <= set(threads) and len(homes) == n_chunks
    # Only those that a worker has too many of go elsewhere.
    for home, names in zip(homes, holders, strict=True):
        for worker in names - {home, "gone"}:
            assert home in names or homes.count(worker) == math.ceil(share * threads[worker])


def test_new_chunks_lie_together():
    """Each worker has consecutive ones, and as many as the others or one more."""
    homes = share_out([()] * 23, {"first": 1, "second": 1, "third": 1})
    runs = [(worker, len(list(run))) for worker, run in groupby(homes)]
    assert [worker for worker, _ in runs] == ["first", "second", "third"]
    assert sorted(length for _, length in runs) == [7, 8, 8]


@given(
    runs=st.lists(
        st.tuples(st.sampled_from(["first", "second"]), st.integers(1, 30)), min_size=1, max_size=5
    )
)
def test_sums_of_neighbours_go_together(runs):
    """All chunks once and in order; in a group they are on one worker, and groups are no smaller
    than they must be."""
    homes = [worker for worker, length in runs for _ in range(length)]
    groups = together(homes, 8)
    assert [n for group in groups for n in group] == list(range(len(homes)))
    assert all(len({homes[n] for n in group}) == 1 and len(group) <= 8 for group in groups)
    for group, following in pairwise(groups):
        assert len(group) == 8 or homes[group[0]] != homes[following[0]]


def test_chunks_that_lie_badly_are_spread(client):
    """All chunks are on one worker at first; half of them are worked on by the other."""
    X = chunks(table(), 10)
    addresses = list(client.scheduler_info(n_workers=-1)["workers"])
    X = client.persist(X, workers=addresses[:1], allow_other_workers=False)
    homes = workers_of(X)
    assert {homes.count(address) for address in addresses} == {len(homes) // 2, -(-len(homes) // 2)}
    opened = dask.persist(*chunked_source.ChunkedSource(X, "missing")._opened(ANY_NUMBERS))
    futures = distributed.futures_of(opened)
    distributed.wait(futures)
    held = client.who_has(futures)
    assert [held[chunk.key][0] for chunk in opened] == homes
