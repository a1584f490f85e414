"""The products of thin matrices: sizes that fit no tile, and nothing written outside."""

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose

from seminmf._kernels.simd import products

DTYPES = {np.float64: 1e-14, np.float32: 1e-5}
# Tiles have four rows and two vectors, or four rows and two columns.
SIZES = [(1, 1, 1), (3, 2, 1), (4, 3, 2), (5, 1, 3), (6, 7, 2), (9, 4, 5)]
GUARD = 64
UNTOUCHED = 12345.0


@njit
def multiply(left, right, offset, out):
    products.multiply(left, right, offset, out)


@njit
def outer(lefts, rights, n_terms, out):
    products.outer(lefts, rights, n_terms, out)


@njit
def dots(lefts, rights, n_rows, out):
    products.dots(lefts, rights, n_rows, out)


class Guarded:
    """An array in the middle of a larger one, of which the rest is to stay as it is."""

    def __init__(self, shape, dtype):
        size = int(np.prod(shape))
        self._all = np.full(size + 2 * GUARD, UNTOUCHED, dtype=dtype)
        self.array = self._all[GUARD : GUARD + size].reshape(shape)

    def check(self):
        assert (self._all[:GUARD] == UNTOUCHED).all() and (self._all[-GUARD:] == UNTOUCHED).all()


def draw(*shape, dtype):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def lanes(dtype):
    return 64 // np.dtype(dtype).itemsize


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n_rows", "n_terms", "n_vectors"), SIZES)
def test_multiply(n_rows, n_terms, n_vectors, dtype):
    width = n_vectors * lanes(dtype)
    left, right = draw(n_rows, n_terms, dtype=dtype), draw(n_terms, width, dtype=dtype)
    out = Guarded((n_rows, width), dtype)
    multiply(left, right, dtype(0.25), out.array)
    expected = 0.25 + left.astype(float) @ right.astype(float)
    assert_allclose(out.array, expected, rtol=DTYPES[dtype], atol=10 * DTYPES[dtype])
    out.check()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_pairs", [1, 2])
@pytest.mark.parametrize(("n_rows", "n_terms", "n_vectors"), SIZES)
def test_outer(n_rows, n_terms, n_vectors, n_pairs, dtype):
    """Sums over the first terms of each pair; there are two more that do not count."""
    width, depth = n_vectors * lanes(dtype), n_terms + 2
    lefts = draw(n_pairs, depth, n_rows, dtype=dtype)
    rights = draw(n_pairs, depth, width, dtype=dtype)
    out = Guarded((n_rows, width), dtype)
    outer(lefts, rights, n_terms, out.array)
    expected = np.einsum(
        "prk,prl->kl", lefts[:, :n_terms].astype(float), rights[:, :n_terms].astype(float)
    )
    assert_allclose(out.array, expected, rtol=DTYPES[dtype], atol=10 * DTYPES[dtype])
    out.check()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_pairs", [1, 2])
@pytest.mark.parametrize(("n_rows", "n_columns", "n_vectors"), SIZES)
def test_dots(n_rows, n_columns, n_vectors, n_pairs, dtype):
    """Of the first rows; there are two more, for which nothing is written."""
    width = n_vectors * lanes(dtype)
    lefts = draw(n_pairs, n_rows + 2, width, dtype=dtype)
    rights = draw(n_pairs, n_columns, width, dtype=dtype)
    out = Guarded((n_rows, n_columns), dtype)
    dots(lefts, rights, n_rows, out.array)
    expected = np.einsum("prl,pkl->rk", lefts[:, :n_rows].astype(float), rights.astype(float))
    assert_allclose(out.array, expected, rtol=DTYPES[dtype], atol=30 * DTYPES[dtype])
    out.check()
