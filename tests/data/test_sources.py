"""Where data may be besides in an array: sparse matrices, memory maps, HDF5 and Zarr files."""

import time
import tracemalloc
import warnings

import numpy as np
import pytest
from kinds import KINDS, Sliced, stored
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, select_n_components
from seminmf._data import disk
from seminmf._data.disk import DiskSource
from seminmf._data.opening import open_source
from seminmf._data.source import row_ranges
from seminmf._data.sparse import SparseSource
from seminmf._kernels.em.sparse_estep import _stripe_ranges

ESTIMATORS = {
    "map": SkellamSNMF(3, solver="em", acceleration=None, max_iter=30, random_state=0),
    "bayesian": BayesianSkellamSNMF(
        3, posterior="mean-field", acceleration=None, max_iter=30, random_state=0
    ),
}
FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    return ESTIMATORS[request.param].__sklearn_clone__()


def ratings(seed=0, shape=(60, 20), share=0.4):
    """A table with gaps, whole numbers, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, 1.0, (shape[0], 2)) @ rng.normal(0.0, 4.0, (2, shape[1]))
    X = np.round(X + rng.normal(size=shape))
    X[rng.random(shape) > share] = np.nan
    return X


# --- blocks ---


@pytest.mark.parametrize("chunk", [None, 1, 4, 7])
@pytest.mark.parametrize("span", [(0, 23), (3, 20), (22, 23)])
def test_disk_blocks_are_all_of_it_once(monkeypatch, chunk, span):
    X = np.arange(23.0 * 5).reshape(23, 5)
    monkeypatch.setattr(disk, "_BLOCK", 3 * 5 * 8)
    sliced = Sliced(X, None if chunk is None else (chunk, 5))
    blocks = list(DiskSource(sliced).blocks(*span))
    assert_array_equal(np.concatenate([block for _, block in blocks]), X[slice(*span)])
    for part, block in blocks:
        assert_array_equal(block, X[part])
        # No chunk is read twice, but for those that other spans begin or end in.
        assert part.start == span[0] or part.start % (chunk or 1) == 0
    assert len(blocks) > 1 or span == (22, 23) or chunk == 7


def test_disk_reads_ahead(monkeypatch):
    """When a block is handed out, the next one is on its way."""
    X = np.arange(24.0).reshape(8, 3)
    monkeypatch.setattr(disk, "_BLOCK", 2 * 3 * 8)
    sliced = Sliced(X)
    blocks = DiskSource(sliced).blocks(0, 8)
    next(blocks)
    for _ in range(1000):
        if len(sliced.reads) == 2:
            break
        time.sleep(0.005)
    assert sliced.reads == [(0, 2), (2, 4)]
    assert len(list(blocks)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_samples_of_sources(kind):
    """However they are asked for."""
    X = ratings()
    source = open_source(SkellamSNMF(2), KINDS[kind](X), fitted=False)
    assert source.shape == X.shape
    assert_array_equal(source.rows(5, 11), X[5:11])
    assert_array_equal(source.take(np.array([7, 2])), X[[7, 2]])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "dask"])
def test_parts_of_sources(kind):
    """Samples and features that kernels read in this process."""
    X = ratings()
    source = open_source(SkellamSNMF(2), KINDS[kind](X), fitted=False)
    columns = source.columns(3, 9)
    assert columns.shape == (60, 6)
    assert_array_equal(columns.rows(5, 11), X[5:11, 3:9])
    assert_array_equal(columns.columns(1, 3).rows(0, 60), X[:, 4:6])
    assert_array_equal(np.concatenate([block.X for block in source.blocks(3, 50)]), X[3:50])
    for rows in (slice(5, 11), np.array([2, 7, 30])):
        assert_array_equal(source.subset(rows).rows(0, len(X[rows])), X[rows])
    edges = source.edges(3)
    assert edges[0] == 0 and edges[-1] == 60 and (np.diff(edges) > 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_ranges_of_stored_cells(seed):
    """Every sample once, none left out, whatever the samples have stored."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 30, rng.integers(1, 40)) * (rng.random() < 0.8)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([np.arange(count) for count in counts]).astype(int)
    X = sparse.csr_array((np.ones(indptr[-1]), indices, indptr), shape=(len(counts), 30))
    source = SparseSource(X)
    for n_ranges in {1, (len(counts) + 1) // 2, len(counts)}:
        edges = source.edges(n_ranges)
        assert edges[0] == 0 and edges[-1] == len(counts)
        assert len(edges) == n_ranges + 1 and (np.diff(edges) > 0).all()
    assert row_ranges(source, 1 << 20)[-1][1] == len(counts)
    for size in (1, 3, 16):
        cells = source.cells(size)
        order = np.lexsort((cells.columns, cells.rows))
        assert_array_equal(cells.columns[order], X.indices)
        assert_array_equal(cells.rows[order], np.repeat(np.arange(len(counts)), counts))
        ranges = _stripe_ranges(cells.starts, 30)
        assert [first for first, _ in ranges[1:]] == [last for _, last in ranges[:-1]]
        if cells.starts[-1]:
            assert sum(cells.starts[b] - cells.starts[a] for a, b in ranges) == X.nnz


# --- the same fit ---


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "array"])
@pytest.mark.parametrize("likelihood", ["real", "integer"])
def test_after_the_fit(estimator, likelihood, kind):
    """All that can be asked of a model, from the same atoms."""
    X, other = ratings(), ratings(1, (40, 20))
    model = estimator.set_params(likelihood=likelihood, tol=1e-2).fit(X)
    data = KINDS[kind](other)
    for ask in (model.transform, model.predict, model.score, model.impute, model.sources):
        assert_allclose(ask(data), ask(other), rtol=1e-7, atol=1e-9)
    same = estimator.__sklearn_clone__().fit(KINDS[kind](X))
    # Rows next to noise are solved to less precision.
    precision = 1e-5 if same.noise_.any() else 1e-6
    found, wanted = same.fit_transform(KINDS[kind](X)), model.fit_transform(X)
    assert_allclose(found, wanted, rtol=precision, atol=1e-9)
    assert same.dispersion_ == pytest.approx(model.dispersion_, rel=1e-9)


@pytest.mark.parametrize("init", ["random", "kmeans", "svd", "prior"])
def test_starts(estimator, init):
    X = ratings(share=0.9)
    estimator.set_params(init=init, max_iter=2)
    dense = estimator.fit(X).atoms_
    assert_allclose(estimator.fit(stored(X)).atoms_, dense, rtol=1e-9)
    assert_allclose(estimator.fit(Sliced(X)).atoms_, dense, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_types(estimator, dtype):
    X = stored(ratings()).astype(dtype)
    model = estimator.fit(X)
    expected = np.float32 if dtype == np.float32 else np.float64
    assert model.activations_.dtype == model.atoms_.dtype == expected
    assert model.transform(X).dtype == expected


@pytest.mark.parametrize("form", FORMATS)
def test_formats_and_the_users_matrix(estimator, form):
    """Any format is taken, and left as it is; what is stored twice is summed, as SciPy does."""
    X = np.nan_to_num(ratings())
    given = sparse.csr_array(X).asformat(form)
    before = given.copy()
    model = estimator.fit(given)
    assert (given != before).nnz == 0
    assert_array_equal(
        model.activations_, estimator.fit(stored(np.where(X, X, np.nan))).activations_
    )


def test_entries_that_are_stored_twice(estimator):
    X = stored(ratings()).tocoo()
    twice = sparse.coo_array(
        (np.tile(X.data / 2, 2), (np.tile(X.row, 2), np.tile(X.col, 2))), shape=X.shape
    )
    unsorted = twice.tocsr(copy=True)
    assert_array_equal(estimator.fit(twice).atoms_, estimator.fit(X).atoms_)
    indices = unsorted.indices.copy()
    estimator.fit(unsorted)
    assert_array_equal(unsorted.indices, indices)


def test_stored_zeros_are_data(estimator):
    X = ratings()
    with_zeros = stored(X)
    assert (with_zeros.data == 0).sum() > 5
    without = with_zeros.copy()
    without.eliminate_zeros()
    model = estimator.fit(with_zeros)
    assert np.abs(model.atoms_ - estimator.fit(without).atoms_).max() > 1e-4


def test_observed_zeros(estimator):
    """The same bits as the dense matrix, though no dense matrix is there."""
    X = np.nan_to_num(ratings())
    dense = estimator.fit(X)
    expected = dense.activations_, dense.transform(X), dense.score(X)
    same = estimator.set_params(sparse_zeros="observed").fit(sparse.csc_array(X))
    assert_array_equal(same.activations_, expected[0])
    assert_array_equal(same.transform(sparse.csr_array(X)), expected[1])
    assert same.score(sparse.csr_array(X)) == expected[2]


def test_newton_takes_stored_cells_and_blocks():
    X = ratings()
    newton = SkellamSNMF(2, random_state=0)
    assert newton.fit(stored(X)).solver_ == "newton"
    assert newton.objective_ == pytest.approx(newton.fit(X).objective_, rel=1e-6)
    assert_allclose(newton.fit(Sliced(X)).atoms_, newton.fit(X).atoms_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [stored, np.asarray, Sliced])
def test_threads_do_not_change_a_bit(estimator, kind, many_tasks):
    X = ratings(shape=(400, 20))
    estimator.set_params(max_iter=3)
    one, two = (estimator.set_params(n_jobs=n).fit(kind(X)).activations_ for n in (1, 2))
    assert_array_equal(one, two)


def test_shapes_below_one():
    """Such priors have their own solver for activations."""
    X = ratings()
    model = SkellamSNMF(2, solver="em", activation_shape_prior=0.8, max_iter=50, random_state=0)
    expected = model.fit(X).transform(X)
    assert_allclose(model.transform(stored(X)), expected, rtol=1e-6, atol=1e-9)


def test_rows_without_a_cell():
    X = ratings()
    X[[0, 7]] = np.nan
    X[:, 3] = np.nan
    model = SkellamSNMF(2, random_state=0)
    with pytest.warns(UserWarning, match="2 samples and 1 features have no observed cell"):
        model.fit(stored(X))
    assert np.isfinite(model.activations_).all() and np.isfinite(model.atoms_).all()
    assert_allclose(model.transform(stored(X))[0], 0.0, atol=1e-12)


def test_euclidean_reads_from_disk():
    X = ratings(share=0.9)
    model = EuclideanSNMF(2, random_state=0)
    expected = model.fit(X).components_
    assert_allclose(model.fit(Sliced(X)).components_, expected, rtol=1e-9)
    assert model.score(Sliced(X)) == pytest.approx(model.score(X), rel=1e-12)
    with pytest.raises(TypeError, match="X must be dense for EuclideanSNMF; found a sparse"):
        model.fit(stored(X))


def test_selection_takes_them():
    X = ratings(share=0.9)
    options = {"criterion": "heldout", "n_folds": 2, "random_state": 0}
    counts = BayesianSkellamSNMF(likelihood="integer", max_iter=50)
    expected = select_n_components(X, [1, 2], estimator=counts, **options).table
    found = select_n_components(stored(X), [1, 2], estimator=counts, **options).table
    assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-9)


# --- files ---


def test_memory_map(monkeypatch, tmp_path, estimator):
    X = ratings()
    path = tmp_path / "X.npy"
    np.save(path, X)
    expected = estimator.fit(X).atoms_
    for least in (0, 1 << 30):
        monkeypatch.setattr("seminmf._data.opening._LARGE", least)
        assert_allclose(estimator.fit(np.load(path, mmap_mode="r")).atoms_, expected, rtol=1e-9)


def test_hdf5_and_zarr(tmp_path, estimator):
    import h5py
    import zarr

    X = ratings()
    expected = estimator.fit(X).atoms_
    with h5py.File(tmp_path / "X.h5", "w") as file:
        table = file.create_dataset("X", data=X, chunks=(7, 20))
        assert_allclose(estimator.fit(table).atoms_, expected, rtol=1e-9)
        assert_allclose(estimator.transform(table), estimator.transform(X), rtol=1e-9)
    table = zarr.open(
        str(tmp_path / "X.zarr"), mode="w", shape=X.shape, chunks=(7, 20), dtype=float
    )
    table[:] = X
    assert_allclose(estimator.fit(table).atoms_, expected, rtol=1e-9)
    assert_allclose(estimator.impute(table), estimator.impute(X), rtol=1e-9)


def test_a_checkpoint_knows_its_data(tmp_path, estimator):
    X = ratings()
    other = np.where(X == 1, 2.0, X)
    # Without the search for noise, which would write hundreds of files.
    estimator.set_params(dispersion=0.0, max_iter=5)
    for kind in KINDS:
        path = tmp_path / f"{kind}.safetensors"
        first = estimator.fit(KINDS[kind](X), checkpoint=path, checkpoint_every=0).atoms_
        assert_array_equal(estimator.fit(KINDS[kind](X), checkpoint=path).atoms_, first)
        with pytest.raises(ValueError, match="data"):
            estimator.fit(KINDS[kind](other), checkpoint=path)


# --- errors ---


def broken(form, X):
    """A sparse matrix whose last index is outside of it; SciPy does not look."""
    X = X.asformat(form)
    if form == "coo":
        X.col = np.append(X.col[:-1], X.shape[1])
    else:
        X.indices = np.append(X.indices[:-1], X.shape[1 if form == "csr" else 0])
    return X


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_indices_outside(estimator, form):
    with pytest.raises(ValueError, match=r"X must have its indices within its shape \(60, 20\)"):
        estimator.fit(broken(form, stored(ratings())))
    assert not hasattr(estimator, "atoms_")


@pytest.mark.parametrize("zeros", ["missing", "observed"])
def test_nan_in_a_sparse_matrix(estimator, zeros):
    X = stored(ratings())
    X.data[3] = np.nan
    with pytest.raises(ValueError, match="X must not store NaN if it is sparse"):
        estimator.set_params(sparse_zeros=zeros).fit(X)


def test_values_of_a_sparse_matrix(estimator):
    X = stored(ratings())
    row, column = 5, int(X.indices[X.indptr[5]])
    X.data[X.indptr[5]] = np.inf
    with pytest.raises(ValueError, match=f"finite.*found inf in row {row}, column {column}"):
        estimator.fit(X)
    X.data[X.indptr[5]] = 0.5
    with pytest.raises(ValueError, match=f"integers.*found 0.5 in row {row}, column {column}"):
        estimator.set_params(likelihood="integer").fit(X)


def test_other_errors(estimator):
    X = stored(ratings())
    with pytest.raises(ValueError, match="sparse_zeros must be one of 'missing', 'observed'"):
        estimator.set_params(sparse_zeros="gone").fit(X)
    estimator.set_params(sparse_zeros="missing")
    with pytest.raises(ValueError, match="at least one observed cell"):
        estimator.fit(sparse.csr_array((5, 4)))
    with pytest.raises(ValueError, match="samples and features, both at least 1"):
        estimator.fit(sparse.csr_array((0, 4)))
    with pytest.raises(ValueError, match=r"real numbers.*complex128"):
        estimator.fit(X.astype(complex))
    with pytest.raises(ValueError, match=r"found shape \(3,\)"):
        estimator.fit(Sliced(np.ones(3)))
    estimator.fit(X)
    before = estimator.atoms_.copy()
    for wrong in (X[:, :5], Sliced(np.ones((4, 5)))):
        with pytest.raises(ValueError, match=r"5 features, but .* is expecting 20 features"):
            estimator.transform(wrong)
    assert_array_equal(estimator.atoms_, before)


@pytest.mark.parametrize(
    "model",
    [
        SkellamSNMF(20, max_iter=60, tol=0.5, random_state=0),
        pytest.param(SkellamSNMF(20, max_iter=60, tol=0, random_state=0), marks=pytest.mark.slow),
        SkellamSNMF(20, solver="em", tol=0.5, random_state=0),
        pytest.param(
            SkellamSNMF(20, solver="em", atom_shape_prior=0.9, tol=0.5, random_state=0),
            marks=pytest.mark.slow,
        ),
        BayesianSkellamSNMF(20, dispersion=0.0, tol=0.5, random_state=0),
    ],
    ids=["newton", "newton, unfinished", "em", "em, small shapes", "vbem"],
)
def test_memory_of_a_fit(model, tmp_path):
    """A fit to a file takes less than six times its factors, and some blocks."""
    n_samples = 100_000
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.normal(size=(n_samples, 24)).astype(np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = clone(model).fit(X[:500])  # compiles
    tracemalloc.start()
    model.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    factors = model.activations_.nbytes + model.atoms_.nbytes
    assert peak < 6 * factors + 2**23


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sparse_samples_in_many_tasks(n_jobs, many_tasks):
    """Tasks that follow each other in the same room do not see each other's sums."""
    rng = np.random.default_rng(0)
    X = rng.normal(0.0, 5.0, (400, 12))
    X[rng.random(X.shape) < 0.6] = np.nan
    model = clone(ESTIMATORS["map"]).set_params(max_iter=3, n_jobs=n_jobs)
    dense, few = (clone(model).fit(data) for data in (X, stored(X)))
    assert_allclose(few.atoms_, dense.atoms_, rtol=1e-9)
    assert_allclose(few.activations_, dense.activations_, rtol=1e-9)
