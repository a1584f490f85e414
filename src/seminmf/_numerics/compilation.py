"""What makes a scalar function compile to packed instructions, in float64 and in float32."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed
from numba.np.arrayobj import populate_array

from .linking import intrinsic, piece

# - forceinline: a call that is left in a loop keeps the loop scalar;
# - "contract" lets a*b + c become one fused instruction. It is the only licence given: the others
#   allow to reorder sums or to assume that there is no NaN and no infinity.
scalar_function = piece(forceinline=True, fastmath={"contract"}, _nrt=False)
# With a loop, which must be unrolled before the function is part of another loop.
looping_function = piece(optimised=True, forceinline=True, fastmath={"contract"}, _nrt=False)
# For arithmetic that recovers its own rounding errors, which "contract" would change.
strict_function = piece(forceinline=True, fastmath=False, _nrt=False)

_INTEGER = {types.float64: types.int64, types.float32: types.int32}


@intrinsic
def bits_of(typing_context, value):
    """Bits of a float, as the signed integer of the same width."""
    integer = _INTEGER[value]

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(integer))

    return integer(value), codegen


@intrinsic
def float_of_bits(typing_context, bits, like):
    """Float of the type of `like` with the given bits, an integer of at least that width."""

    def codegen(context, builder, signature, args):
        # Numba computes with 32-bit integers in 64 bits: back to the width of the float.
        narrow = context.cast(builder, args[0], bits, _INTEGER[like])
        return builder.bitcast(narrow, args[1].type)

    return like(bits, like), codegen


@intrinsic
def by_precision(typing_context, x, pair):
    """Return pair[0] for a float32 `x`, pair[1] for a float64, decided at compile time."""
    place = 0 if x == types.float32 else 1

    def codegen(context, builder, signature, args):
        return builder.extract_value(args[1], place)

    return pair[place](x, pair), codegen


@intrinsic
def flat(typing_context, array):
    """The numbers of a C-contiguous array in one row, as a view."""
    row = array.copy(ndim=1)

    def codegen(context, builder, signature, args):
        whole = context.make_array(array)(context, builder, args[0])
        view = context.make_array(row)(context, builder)
        populate_array(
            view,
            data=whole.data,
            shape=[whole.nitems],
            strides=[whole.itemsize],
            itemsize=whole.itemsize,
            meminfo=whole.meminfo,
            parent=whole.parent,
        )
        return impl_ret_borrowed(context, builder, row, view._getvalue())

    return row(array), codegen


def rule_of(kind: Any, name: str) -> Any:
    """What an object's class has under a name, by the type that the compiler sees of the object.

    For overloads that hand over to the class. A class that has no such rule is refused, rather
    than given the rule of another.
    """
    owner = getattr(kind, "instance_class", None)
    if not hasattr(owner, name):
        raise TypingError(f"{getattr(owner, '__name__', kind)} has no {name}.")
    return getattr(owner, name)


@intrinsic
def fused_multiply_add(typing_context, a, b, c):
    """a b + c with one rounding. For exact products; elsewhere "contract" does as well."""

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return a(a, b, c), codegen


def _sum_of_powers(builder, point, terms):
    """Emit a polynomial, constant term first, as pairs of pairs of terms (Estrin).

    Horner's rule has fewer multiplications, but each waits for the one before.
    """
    while len(terms) > 1:
        pairs = [
            builder.fadd(builder.fmul(high, point), low)
            for low, high in zip(terms[::2], terms[1::2], strict=False)
        ]
        terms = pairs + terms[2 * len(pairs) :]
        point = builder.fmul(point, point)
    return terms[0]


def _constants(context, builder, table, precision):
    """Values of a tuple of float64, rounded to a precision."""
    values = cgutils.unpack_tuple(builder, table)
    return [context.cast(builder, value, types.float64, precision) for value in values]


@intrinsic
def polynomial(typing_context, x, coefficients):
    """Polynomial in `x`, constant term first, unrolled, in the precision of `x`.

    A loop over a tuple would do the same, but stops the vectoriser: the tuple lands in memory.
    """

    def codegen(context, builder, signature, args):
        return _sum_of_powers(builder, args[0], _constants(context, builder, args[1], x))

    return x(x, coefficients), codegen


@intrinsic
def polynomial2(typing_context, x, y, rows):
    """Polynomial in `x`, constant term first, whose coefficients are polynomials in `y`."""

    def codegen(context, builder, signature, args):
        terms = [
            _sum_of_powers(builder, args[1], _constants(context, builder, row, x))
            for row in cgutils.unpack_tuple(builder, args[2])
        ]
        return _sum_of_powers(builder, args[0], terms)

    return x(x, y, rows), codegen
