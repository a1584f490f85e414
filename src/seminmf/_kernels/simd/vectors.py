"""Vectors of numbers as values in compiled code: as wide as a cache line, in registers.

The compiler turns a loop over cells into vector instructions by itself, but not a matrix product
into one that keeps a tile of the result in registers. With vectors as values that tile can be
written down. LLVM splits them where the machine's registers are narrower.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model
from numpy.typing import NDArray

from ..._numerics.linking import intrinsic

_BYTES = 64
_FLAGS = ("contract", "reassoc", "nsz")


class Vector(types.Type):
    """A cache line of numbers of one type."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.lanes = 8 * _BYTES // dtype.bitwidth
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        element = manager.lookup(vector.dtype).get_value_type()
        super().__init__(manager, vector, ir.VectorType(element, vector.lanes))


@intrinsic
def lanes(typing_context, array):
    """Numbers in a vector of the array's type."""
    count = Vector(array.dtype).lanes

    def codegen(context, builder, signature, args):
        return context.get_constant(types.intp, count)

    return types.intp(array), codegen


def _pointer(context, builder, array_type, array, offset):
    data = context.make_array(array_type)(context, builder, array).data
    line = context.get_value_type(Vector(array_type.dtype)).as_pointer()
    return builder.bitcast(builder.gep(data, [offset]), line)


def _alignment(array_type):
    # Of one number: a vector may start anywhere.
    return array_type.dtype.bitwidth // 8


@intrinsic
def load(typing_context, array, offset):
    """Vector of the numbers from `offset` on, counted in a C-contiguous array."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, array, *args)
        return builder.load(pointer, align=_alignment(array))

    return Vector(array.dtype)(array, types.intp), codegen


@intrinsic
def store(typing_context, array, offset, vector):
    """Write a vector from `offset` on."""

    def codegen(context, builder, signature, args):
        pointer = _pointer(context, builder, array, *args[:2])
        builder.store(args[2], pointer, align=_alignment(array))
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), codegen


@intrinsic
def transpose_square(typing_context, array, offset, stride, out, out_offset, out_stride, scale):
    """Write a square of as many rows as lanes, transposed, each lane times its lane of `scale`.

    Row r of the square starts at offset + r stride, that of the transpose at
    out_offset + r out_stride. By halves: each stage exchanges blocks between pairs of vectors.
    """
    vector = Vector(array.dtype)
    n = vector.lanes

    def codegen(context, builder, signature, args):
        source, at, step, target, to, target_step, factor = args
        rows = []
        for r in range(n):
            shift = builder.mul(step, ir.Constant(step.type, r))
            pointer = _pointer(context, builder, array, source, builder.add(at, shift))
            rows.append(builder.load(pointer, align=_alignment(array)))
        size = 1
        while size < n:
            low = [lane if lane & size == 0 else n + lane - size for lane in range(n)]
            high = [lane + size if lane & size == 0 else n + lane for lane in range(n)]
            masks = [ir.Constant(ir.VectorType(ir.IntType(32), n), mask) for mask in (low, high)]
            for r in range(n):
                if r & size == 0:
                    pair = rows[r], rows[r + size]
                    rows[r], rows[r + size] = (builder.shuffle_vector(*pair, m) for m in masks)
            size *= 2
        for r in range(n):
            shift = builder.mul(target_step, ir.Constant(step.type, r))
            pointer = _pointer(context, builder, out, target, builder.add(to, shift))
            product = builder.fmul(rows[r], factor, flags=_FLAGS)
            builder.store(product, pointer, align=_alignment(out))
        return context.get_dummy_value()

    integer = types.intp
    return types.void(array, integer, integer, out, integer, integer, vector), codegen


@intrinsic
def splat(typing_context, number):
    """Vector with the same number in every lane."""
    vector = Vector(number)

    def codegen(context, builder, signature, args):
        kind = context.get_value_type(vector)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), args[0], cgutils.int32_t(0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), vector.lanes), [0] * vector.lanes)
        return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), mask)

    return vector(number), codegen


@intrinsic
def multiply_add(typing_context, a, b, c):
    """a b + c, lane by lane."""

    def codegen(context, builder, signature, args):
        product = builder.fmul(args[0], args[1], flags=_FLAGS)
        return builder.fadd(product, args[2], flags=_FLAGS)

    return a(a, b, c), codegen


@intrinsic
def add(typing_context, a, b):
    """a + b, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.fadd(*args, flags=_FLAGS)

    return a(a, b), codegen


@intrinsic
def negative(typing_context, a):
    """−a, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.fneg(args[0])

    return a(a), codegen


@intrinsic
def least(typing_context, a, b):
    """The smaller of a and b, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return a(a, b), codegen


@intrinsic
def greatest(typing_context, a, b):
    """The larger of a and b, lane by lane."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return a(a, b), codegen


@intrinsic
def total(typing_context, vector):
    """Sum of the lanes, by halves."""

    def codegen(context, builder, signature, args):
        value = args[0]
        size = vector.lanes
        while size > 1:
            size //= 2
            kind = ir.VectorType(ir.IntType(32), size)
            low = ir.Constant(kind, list(range(size)))
            high = ir.Constant(kind, list(range(size, 2 * size)))
            undefined = ir.Constant(value.type, ir.Undefined)
            value = builder.fadd(
                builder.shuffle_vector(value, undefined, low),
                builder.shuffle_vector(value, undefined, high),
                flags=_FLAGS,
            )
        return builder.extract_element(value, cgutils.int32_t(0))

    return vector.dtype(vector), codegen


def aligned(size: int, like: NDArray) -> NDArray:
    """Room for `size` numbers of the type of `like` that starts on a cache line.

    A vector that lies across two lines takes twice the time to load.
    """
    lane = _BYTES // like.itemsize
    memory = np.empty(size + lane, dtype=like.dtype)
    first = -(memory.ctypes.data // like.itemsize) % lane
    return memory[first : first + size]
