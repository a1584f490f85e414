"""Pieces of kernels, which exist in compiled code only, for Python to call."""

from functools import cache

from numba import njit


@cache
def called(piece):
    """What Python may call in the place of a piece."""

    @njit(error_model="numpy")
    def call(*args):
        return piece(*args)

    return call
