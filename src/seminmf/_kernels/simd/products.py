"""The three thin matrix products of a pass, on a block that is in the cache.

A block's matrices have a short side, the components, for which BLAS is not made. Each product
keeps a tile of its result in registers (`vectors`). Matrices that are read lane by lane have rows
of a whole number of vectors. Where a tile reaches over the edge it repeats the last row or vector,
so that there is no second code for the rest; results are written, not added, and may be so twice.
"""

from __future__ import annotations

from numba import types

from ..._numerics.compilation import scalar_function
from ..._numerics.compiled import part
from ..._numerics.linking import handed_to, intrinsic
from .vectors import lanes, load, multiply_add, splat, store, total


@intrinsic
def first_term(typing_context, offset, row, lane):
    """What sums begin with: a number, or a row of an array, which may be the same for all rows."""
    by_row = isinstance(offset, types.Array)
    return handed_to(typing_context, _of_row if by_row else _of_all, offset, row, lane)


@scalar_function
def _of_row(offset, row, lane):
    return load(offset, min(row, offset.shape[0] - 1) * offset.shape[1] + lane)


@scalar_function
def _of_all(offset, row, lane):
    return splat(offset)


@part
def multiply(left, right, offset, out):
    """out[r, l] = offset + Σ_k left[r, k] right[k, l]; the offset may be an array."""
    n_rows, n_terms = left.shape
    width = right.shape[1]
    last_row, last_lane = n_rows - 1, width - lanes(right)
    for r0 in range(0, n_rows, 4):
        r1, r2, r3 = min(r0 + 1, last_row), min(r0 + 2, last_row), min(r0 + 3, last_row)
        for l0 in range(0, width, 2 * lanes(right)):
            l1 = min(l0 + lanes(right), last_lane)
            a0, a1 = first_term(offset, r0, l0), first_term(offset, r0, l1)
            b0, b1 = first_term(offset, r1, l0), first_term(offset, r1, l1)
            c0, c1 = first_term(offset, r2, l0), first_term(offset, r2, l1)
            d0, d1 = first_term(offset, r3, l0), first_term(offset, r3, l1)
            for k in range(n_terms):
                x0, x1 = load(right, k * width + l0), load(right, k * width + l1)
                a, b = splat(left[r0, k]), splat(left[r1, k])
                c, d = splat(left[r2, k]), splat(left[r3, k])
                a0, a1 = multiply_add(a, x0, a0), multiply_add(a, x1, a1)
                b0, b1 = multiply_add(b, x0, b0), multiply_add(b, x1, b1)
                c0, c1 = multiply_add(c, x0, c0), multiply_add(c, x1, c1)
                d0, d1 = multiply_add(d, x0, d0), multiply_add(d, x1, d1)
            _store_pair(out, r0 * width, l0, l1, a0, a1)
            _store_pair(out, r1 * width, l0, l1, b0, b1)
            _store_pair(out, r2 * width, l0, l1, c0, c1)
            _store_pair(out, r3 * width, l0, l1, d0, d1)


@part
def outer(lefts, rights, n_terms, out):
    """out[k, l] = Σ_p Σ_r lefts[p, r, k] rights[p, r, l], over the pairs p and r < n_terms."""
    n_pairs, _, n_rows = lefts.shape
    depth, width = rights.shape[1:]
    last_row, last_lane = n_rows - 1, width - lanes(rights)
    zero = splat(type(rights[0, 0, 0])(0.0))
    for k0 in range(0, n_rows, 4):
        k1, k2, k3 = min(k0 + 1, last_row), min(k0 + 2, last_row), min(k0 + 3, last_row)
        for l0 in range(0, width, 2 * lanes(rights)):
            l1 = min(l0 + lanes(rights), last_lane)
            a0 = a1 = b0 = b1 = c0 = c1 = d0 = d1 = zero
            for p in range(n_pairs):
                for r in range(n_terms):
                    row = (p * depth + r) * width
                    x0, x1 = load(rights, row + l0), load(rights, row + l1)
                    a, b = splat(lefts[p, r, k0]), splat(lefts[p, r, k1])
                    c, d = splat(lefts[p, r, k2]), splat(lefts[p, r, k3])
                    a0, a1 = multiply_add(a, x0, a0), multiply_add(a, x1, a1)
                    b0, b1 = multiply_add(b, x0, b0), multiply_add(b, x1, b1)
                    c0, c1 = multiply_add(c, x0, c0), multiply_add(c, x1, c1)
                    d0, d1 = multiply_add(d, x0, d0), multiply_add(d, x1, d1)
            _store_pair(out, k0 * width, l0, l1, a0, a1)
            _store_pair(out, k1 * width, l0, l1, b0, b1)
            _store_pair(out, k2 * width, l0, l1, c0, c1)
            _store_pair(out, k3 * width, l0, l1, d0, d1)


@part
def dots(lefts, rights, n_rows, out):
    """out[r, k] = Σ_p Σ_l lefts[p, r, l] rights[p, k, l], over the pairs p, for r < n_rows."""
    n_pairs, depth, width = lefts.shape
    n_components = rights.shape[1]
    last_row = n_rows - 1
    zero = splat(type(rights[0, 0, 0])(0.0))
    for r0 in range(0, n_rows, 4):
        r1, r2, r3 = min(r0 + 1, last_row), min(r0 + 2, last_row), min(r0 + 3, last_row)
        for k0 in range(0, n_components, 2):
            k1 = min(k0 + 1, n_components - 1)
            a0 = a1 = b0 = b1 = c0 = c1 = d0 = d1 = zero
            for p in range(n_pairs):
                row, column = p * depth, p * n_components
                for l in range(0, width, lanes(rights)):
                    x0 = load(rights, (column + k0) * width + l)
                    x1 = load(rights, (column + k1) * width + l)
                    a, b = load(lefts, (row + r0) * width + l), load(lefts, (row + r1) * width + l)
                    c, d = load(lefts, (row + r2) * width + l), load(lefts, (row + r3) * width + l)
                    a0, a1 = multiply_add(a, x0, a0), multiply_add(a, x1, a1)
                    b0, b1 = multiply_add(b, x0, b0), multiply_add(b, x1, b1)
                    c0, c1 = multiply_add(c, x0, c0), multiply_add(c, x1, c1)
                    d0, d1 = multiply_add(d, x0, d0), multiply_add(d, x1, d1)
            out[r0, k0], out[r0, k1] = total(a0), total(a1)
            out[r1, k0], out[r1, k1] = total(b0), total(b1)
            out[r2, k0], out[r2, k1] = total(c0), total(c1)
            out[r3, k0], out[r3, k1] = total(d0), total(d1)


@scalar_function
def _store_pair(out, row, l0, l1, first, second):
    store(out, row + l0, first)
    store(out, row + l1, second)
