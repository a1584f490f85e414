"""A factor of a tensor model: how its array lies in memory, its prior, and what of it is frozen.

Users see the axes as written, with signed factors as two arrays, the positive and the negative
part. Inside, a factor that sums to 1 is (signs, given, new), as atoms are (2, K, I), and a free one
is (samples, all else), as activations are (J, K): the priors are those of the matrix model.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .language import Axis
from .network import Role

_ONE = np.ones(1)


class Layout(NamedTuple):
    """Where the axes of a factor are in memory.

    Attributes
    ----------
    axes : tuple of Axis
        As they are written.
    sizes : tuple of int
    signs : int
        2 for a signed factor, or else 1.
    role : Role
    sample : int or None
        The axis of the samples, of a free factor that has one.
    """

    axes: tuple[Axis, ...]
    sizes: tuple[int, ...]
    signs: int
    role: Role
    sample: int | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """The axes in the order in which they lie; −1 is the axis of signs."""
        if not self.role.is_free:
            return (-1, *self.role.given, *self.role.new)
        others = tuple(n for n in range(len(self.axes)) if n != self.sample)
        return (-1, *others) if self.sample is None else (self.sample, -1, *others)

    @property
    def full_shape(self) -> tuple[int, ...]:
        """Length of each axis in that order."""
        return tuple(self.signs if n < 0 else self.sizes[n] for n in self.order)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array inside."""
        if self.role.is_free:
            rows = 1 if self.sample is None else self.sizes[self.sample]
            return rows, math.prod(self.full_shape) // rows
        given = math.prod(self.sizes[n] for n in self.role.given)
        return self.signs, given, math.prod(self.sizes[n] for n in self.role.new)

    @property
    def n_cells(self) -> int:
        """Number of entries."""
        return math.prod(self.full_shape)

    def place_of(self, letter: str) -> int:
        """Where the axis of a letter is in `full_shape`."""
        return self.order.index([str(axis) for axis in self.axes].index(letter))

    def with_size(self, letter: str, size: int) -> Layout:
        """The same with another number of values of a letter."""
        own = [str(axis) == letter for axis in self.axes]
        sizes = (size if here else n for n, here in zip(self.sizes, own, strict=True))
        return self._replace(sizes=tuple(sizes))

    def pack(self, parts: NDArray) -> NDArray:
        """The array inside, of one (signs, *sizes); axes may be of length 1."""
        full = np.broadcast_to(parts, (self.signs, *self.sizes))
        turned = full.transpose(tuple(n + 1 for n in self.order))
        return np.ascontiguousarray(turned).reshape(self.shape)

    def unpack(self, array: NDArray) -> NDArray:
        """The array (signs, *sizes) of one inside."""
        back = np.argsort([n + 1 for n in self.order])
        return np.ascontiguousarray(array.reshape(self.full_shape).transpose(back))


class TensorFactor(NamedTuple):
    """A factor with its prior.

    Attributes
    ----------
    name : str
    layout : Layout
    prior : Gamma or Dirichlet
        The latter where it sums to 1. Its arrays are in the layout inside.
    frozen : boolean array
        Entries that stay, in the layout inside.
    known : array
        Values of these; what it has elsewhere does not matter.
    exposed : bool
        Whether a free factor is multiplied by what does not simply sum to 1.
    row_weights : array
        What the rows count, if they are samples; or else 1.
    has_samples : bool
        False: all factors are arrays in memory.
    """

    name: str
    layout: Layout
    prior: Any
    frozen: NDArray
    known: NDArray
    exposed: bool = False
    row_weights: NDArray = _ONE
    has_samples: bool = False

    @property
    def is_free(self) -> bool:
        """Whether it does not sum to 1."""
        return self.layout.role.is_free

    @property
    def is_frozen(self) -> bool:
        """Whether all of it stays."""
        return bool(self.frozen.all())

    def keep_frozen(self, updated: NDArray, before: NDArray) -> NDArray:
        """The updated array with what was before where that is frozen."""
        return np.where(self.frozen, before, updated) if self.frozen.any() else updated
