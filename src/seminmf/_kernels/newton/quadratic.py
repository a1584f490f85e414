"""Small quadratic problems with bounds, one in each lane, by coordinate descent."""

from __future__ import annotations

import math

from ..._numerics.compilation import flat, scalar_function
from ..._numerics.compiled import part
from ..simd.vectors import add, greatest, lanes, load, multiply_add, negative, splat, store


@part
def add_squares(left, right, n_terms, out):
    """out[k, m, l] += Σ_i left[k, i, l] right[m, i, l] for m ≤ k, in lanes l; two vectors wide.

    A tile that reaches over the edge repeats the last row: it writes the same result again.
    """
    n_rows, depth, width = left.shape
    lane = lanes(left)
    last = n_rows - 1
    for k0 in range(0, n_rows, 2):
        k1 = min(k0 + 1, last)
        for m0 in range(0, k1 + 1, 2):
            m1 = min(m0 + 1, last)
            p, q = (k0 * n_rows + m0) * width, (k0 * n_rows + m1) * width
            r, s = (k1 * n_rows + m0) * width, (k1 * n_rows + m1) * width
            a0, a1, b0, b1 = load(out, p), load(out, p + lane), load(out, q), load(out, q + lane)
            c0, c1, d0, d1 = load(out, r), load(out, r + lane), load(out, s), load(out, s + lane)
            for i in range(n_terms):
                i0, i1 = (k0 * depth + i) * width, (k1 * depth + i) * width
                j0, j1 = (m0 * depth + i) * width, (m1 * depth + i) * width
                x0, x1, y0, y1 = (
                    load(left, i0),
                    load(left, i0 + lane),
                    load(left, i1),
                    load(left, i1 + lane),
                )
                u0, u1, v0, v1 = (
                    load(right, j0),
                    load(right, j0 + lane),
                    load(right, j1),
                    load(right, j1 + lane),
                )
                a0, a1 = multiply_add(x0, u0, a0), multiply_add(x1, u1, a1)
                b0, b1 = multiply_add(x0, v0, b0), multiply_add(x1, v1, b1)
                c0, c1 = multiply_add(y0, u0, c0), multiply_add(y1, u1, c1)
                d0, d1 = multiply_add(y0, v0, d0), multiply_add(y1, v1, d1)
            store(out, p, a0), store(out, p + lane, a1)
            store(out, q, b0), store(out, q + lane, b1)
            store(out, r, c0), store(out, r + lane, c1)
            store(out, s, d0), store(out, s + lane, d1)


@part
def bounded_quadratic(slope, hessian, lowest, workspace, max_sweeps, tolerance, move):
    """Minimise slope·move + ½ move·hessian·move over move ≥ lowest, in every lane.

    `hessian` (n, n, lanes) is given on and below its diagonal, and filled in above. A lane that has
    settled does not move any more, so that no lane knows of the others. `workspace` is
    (3 n + 3, lanes).
    """
    n, width = slope.shape
    lane = lanes(slope)
    diagonal, inverse, root = workspace[:n], workspace[n : 2 * n], workspace[2 * n : 3 * n]
    largest, size, active = workspace[3 * n], workspace[3 * n + 1], workspace[3 * n + 2]
    one = type(slope[0, 0])(1)
    zero = splat(one - one)
    for half in range(0, width, lane):
        store(active, half, splat(one))
        for k in range(n):
            for m in range(k):
                entry = load(hessian, (k * n + m) * width + half)
                store(hessian, (m * n + k) * width + half, entry)
            store(diagonal, k * width + half, load(hessian, (k * n + k) * width + half))
            store(move, k * width + half, zero)
    flat_diagonal, flat_inverse, flat_root = flat(diagonal), flat(inverse), flat(root)
    for at in range(flat_diagonal.size):
        flat_inverse[at] = one / flat_diagonal[at]
        flat_root[at] = math.sqrt(flat_diagonal[at])
    for _ in range(max_sweeps):
        largest0 = largest1 = size0 = size1 = zero
        active0, active1 = load(active, 0), load(active, lane)
        for k in range(n):
            at0, at1 = k * width, k * width + lane
            a0, a1, b0, b1 = load(slope, at0), load(slope, at1), zero, zero
            row = k * n * width
            for m in range(0, n - 1, 2):
                to0, to1 = m * width, m * width + lane
                a0 = multiply_add(load(hessian, row + to0), load(move, to0), a0)
                a1 = multiply_add(load(hessian, row + to1), load(move, to1), a1)
                to0, to1 = to0 + width, to1 + width
                b0 = multiply_add(load(hessian, row + to0), load(move, to0), b0)
                b1 = multiply_add(load(hessian, row + to1), load(move, to1), b1)
            if n % 2:
                to0, to1 = (n - 1) * width, (n - 1) * width + lane
                b0 = multiply_add(load(hessian, row + to0), load(move, to0), b0)
                b1 = multiply_add(load(hessian, row + to1), load(move, to1), b1)
            here0, here1 = load(move, at0), load(move, at1)
            wanted0 = multiply_add(negative(add(a0, b0)), load(inverse, at0), here0)
            wanted1 = multiply_add(negative(add(a1, b1)), load(inverse, at1), here1)
            change0 = add(greatest(wanted0, load(lowest, at0)), negative(here0))
            change1 = add(greatest(wanted1, load(lowest, at1)), negative(here1))
            here0 = multiply_add(change0, active0, here0)
            here1 = multiply_add(change1, active1, here1)
            store(move, at0, here0), store(move, at1, here1)
            root0, root1 = load(root, at0), load(root, at1)
            largest0, size0 = (
                _larger(change0, root0, largest0, zero),
                _larger(here0, root0, size0, zero),
            )
            largest1, size1 = (
                _larger(change1, root1, largest1, zero),
                _larger(here1, root1, size1, zero),
            )
        store(largest, 0, largest0), store(largest, lane, largest1)
        store(size, 0, size0), store(size, lane, size1)
        n_active = 0
        for l in range(width):
            if largest[l] <= tolerance * size[l]:
                active[l] = 0
            else:
                n_active += 1
        if n_active == 0:
            break


@scalar_function
def _larger(vector, factor, bound, zero):
    """The larger of |vector| factor and bound."""
    product = multiply_add(vector, factor, zero)
    return greatest(bound, greatest(product, negative(product)))
