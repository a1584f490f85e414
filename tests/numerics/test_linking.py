"""Functions that are compiled with those that call them, and chosen by type."""

import numpy as np
import pytest
from numba import njit, types
from numba.core import event
from numba.extending import intrinsic

from seminmf._numerics.compiled import kernel, part
from seminmf._numerics.linking import handed_to


@part
def double(x):
    return x + x


@part
def negative(x):
    return -x


@intrinsic
def chosen(typing_context, unused, x):
    """Twice a float, minus an integer."""
    choice = double if isinstance(x, types.Float) else negative
    return handed_to(typing_context, choice, unused, x, first=1)


def test_a_piece_says_that_it_is_not_for_python():
    with pytest.raises(TypeError, match="double exists in compiled code only"):
        double(1.5)


def test_a_function_is_chosen_by_the_type_of_its_argument():
    @kernel
    def call(x):
        return chosen(None, x)

    assert call(1.5) == 3.0
    assert call(3) == -3


def test_others_than_kernels_may_call_a_piece_that_calls_another():
    @part
    def fourfold(x):
        return double(double(x))

    @njit
    def call(x):
        return fourfold(x)

    assert call(1.5) == 6.0


def test_a_piece_is_compiled_once_for_all_kernels():
    @part
    def shared(x):
        return x + 1

    @kernel
    def one(x):
        return shared(x)

    @kernel
    def other(x):
        return 2 * shared(x)

    with event.install_recorder("numba:compile") as recorded:
        assert (one(1.5), other(1.5)) == (2.5, 5.0)
    functions = [found.data["dispatcher"] for _, found in recorded.buffer if found.is_start]
    assert functions.count(shared) == 1


def test_arrays_are_those_that_were_handed_over():
    @part
    def fill(array, value):
        for i in range(array.size):
            array[i] = value

    @kernel
    def call(array):
        fill(array[1:3], 5.0)

    array = np.zeros(4)
    call(array)
    assert array.tolist() == [0, 5, 5, 0]


@pytest.mark.parametrize("decorate", [part, kernel])
def test_what_needs_more_of_the_compiler_gets_it(decorate):
    """A constant that becomes a variable has two types, which only SSA tells apart."""

    @decorate
    def halved(n):
        width = LARGEST
        while width > n:
            width //= 2
        return width

    @kernel
    def call(n):
        return halved(n)

    assert call(5) == 4


LARGEST = 64
