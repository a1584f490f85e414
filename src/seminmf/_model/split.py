"""A tensor model as matrices: rates[s] = Λ Θ[s], and the way back from what the E-step returns.

Some letters of the data are rows, the others features. Operands with row letters are multiplied to
Λ (rows, columns), the others to Θ (2, columns, features), where columns are the cells of the
letters that both have. Terms lie beside each other along the columns. No array of data × columns
exists.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .factors import Layout
from .language import Observation, Term, Use

# The axis of the rates' sign. Those of factors have a number behind.
_SIGN = "±"
# Cells of data that may be copied in another order, for speed.
MOST_COPIED = 1 << 25
# Numbers of Θ that are as good as none beside so many cells.
_MOST_ATOMS = 1 << 22
# Cells and least rows of a block of the E-step.
_CELLS_AT_ONCE, _LEAST_ROWS = 1 << 14, 4
# A letter of the data in an operand that has row and feature letters is a column, too.
_COPY = "'"


class Reach(NamedTuple):
    """How an axis of a factor is seen by the cells of a tensor with gaps at its ends.

    Cell p of a letter t has t = p − padding, and looks at u = t − d + lags − 1 of the factor, for
    each lag d; with one lag it is t itself.
    """

    place: int
    letter: str
    lag: str
    padding: int
    n_lags: int


class View(NamedTuple):
    """A factor as an operand of one term.

    Attributes
    ----------
    factor : int
        Its number.
    layout : Layout
    labels : tuple of str
        Labels of the view's axes, lags last.
    reaches : tuple of Reach
        Axes that cells do not see as they are.
    pick : int or None
        Of the last axis, what belongs to this term alone.
    """

    factor: int
    layout: Layout
    labels: tuple[str, ...]
    reaches: tuple[Reach, ...]
    pick: int | None = None

    def of(self, point: Sequence[NDArray]) -> NDArray:
        """The operand at a point, without a copy if possible."""
        array = point[self.factor].reshape(self.shape)
        if self.pick is not None:
            array = array[..., self.pick]
        for reach in self.reaches:
            lengths = [(0, 0)] * array.ndim
            lengths[reach.place] = (reach.padding, reach.padding)
            padded = np.pad(array, lengths)
            array = sliding_window_view(padded, reach.n_lags, axis=reach.place)[..., ::-1]
            if not reach.lag:
                array = array[..., 0]
        return array

    def back(self, gradient: NDArray, sums: list[NDArray], row: str, first: int) -> None:
        """Add what belongs to each entry of the factor; cells of label `row` start with `first`."""
        target = sums[self.factor].reshape(self.shape)
        if self.pick is not None:
            target = target[..., self.pick]
        reached = [reach.place for reach in self.reaches]
        for reach in reversed(self.reaches):
            start = first if self.labels[reach.place] == row else 0
            gradient = self._folded(gradient, reach, start)
        place = self.labels.index(row) if row in self.labels else -1
        if place >= 0 and place not in reached:
            cells = slice(first, first + gradient.shape[place])
            target = target[(slice(None),) * place + (cells,)]
        target += gradient

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the factor's own axes, without that of signs if it has none."""
        shape = self.layout.full_shape
        return shape if self.layout.signs == 2 else _without(shape, self.layout.order.index(-1))

    def _folded(self, gradient: NDArray, reach: Reach, first: int) -> NDArray:
        """Sums of a gradient (cells, …, lags) over the cells that look at the same entry."""
        size = self.shape[reach.place]
        by_lag = np.moveaxis(gradient, -1, 0) if reach.lag else gradient[None]
        shape = list(by_lag.shape[1:])
        n_cells, shape[reach.place] = shape[reach.place], size
        folded = np.zeros(shape)
        to, cells = np.moveaxis(folded, reach.place, 0), np.moveaxis(by_lag, reach.place + 1, 1)
        for d, own in enumerate(cells):
            start = first - reach.padding + (reach.n_lags - 1 - d)
            low, high = max(start, 0), min(start + n_cells, size)
            if low < high:
                to[low:high] += own[low - start : high - start]
        return folded


class Side(NamedTuple):
    """The operands of one side of a term, some of which are fixed arrays."""

    views: tuple[View, ...]
    fixed: tuple[tuple[NDArray, tuple[str, ...]], ...]
    output: tuple[str, ...]

    def of(self, point: Sequence[NDArray], rows: slice | None = None, row: str = "") -> NDArray:
        """The product of all, with the axes of `output`; for some cells of the row letter."""
        return contract(*self._operands(point, rows, row), self.output)

    def back(
        self,
        gradient: NDArray,
        point: Sequence[NDArray],
        sums: list[NDArray],
        rows: slice | None = None,
        row: str = "",
    ) -> None:
        """Add G of each factor: the gradient times all other operands."""
        arrays, labels = self._operands(point, rows, row)
        for n, view in enumerate(self.views):
            others = [array for m, array in enumerate(arrays) if m != n]
            other_labels = [label for m, label in enumerate(labels) if m != n]
            own = contract([gradient, *others], [self.output, *other_labels], labels[n])
            view.back(own, sums, row, 0 if rows is None else rows.start)

    def _operands(
        self, point: Sequence[NDArray], rows: slice | None, row: str
    ) -> tuple[list[NDArray], list[tuple[str, ...]]]:
        arrays = [view.of(point) for view in self.views]
        labels = [view.labels for view in self.views]
        arrays += [array for array, _ in self.fixed]
        labels += [label for _, label in self.fixed]
        if rows is not None:
            arrays = [
                array[tuple(rows if label == row else slice(None) for label in own)]
                for array, own in zip(arrays, labels, strict=True)
            ]
        return arrays, labels


class TermSplit(NamedTuple):
    """The two sides of a term, and how many columns it has."""

    left: Side
    right: Side
    n_columns: int


class Split(NamedTuple):
    """An observed tensor as a matrix.

    Attributes
    ----------
    rows, features : tuples of str
        Letters of the data.
    shape : tuple of int
        Lengths of `rows` and of `features`, with the gaps at both ends.
    terms : tuple of TermSplit
    """

    rows: tuple[str, ...]
    features: tuple[str, ...]
    shape: tuple[int, ...]
    terms: tuple[TermSplit, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return math.prod(self.shape[: len(self.rows)])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return math.prod(self.shape[len(self.rows) :])

    @property
    def n_columns(self) -> int:
        """Number of columns of Λ."""
        return sum(term.n_columns for term in self.terms)

    def left(self, point: Sequence[NDArray], cells: slice | None = None) -> NDArray:
        """Λ (rows, columns), for some cells of the first row letter."""
        parts = [term.left.of(point, cells, self.rows[0]) for term in self.terms]
        n_rows = math.prod(parts[0].shape[: len(self.rows)])
        return np.concatenate([part.reshape(n_rows, -1) for part in parts], axis=1)

    def right(self, point: Sequence[NDArray]) -> NDArray:
        """Θ (2, columns, features)."""
        parts = [term.right.of(point) for term in self.terms]
        return np.concatenate([part.reshape(2, -1, self.n_features) for part in parts], axis=1)

    def back_left(
        self, gradient: NDArray, point: Sequence[NDArray], sums: list[NDArray], cells: slice
    ) -> None:
        """Add G of the factors on the left, from U^act (rows, columns) of some cells."""
        lengths = (cells.stop - cells.start, *self.shape[1 : len(self.rows)])
        for term, part in zip(self.terms, self._parts(gradient, 1), strict=True):
            shape = (*lengths, *_column_shape(term, len(self.rows)))
            term.left.back(part.reshape(shape), point, sums, cells, self.rows[0])

    def back_right(self, gradient: NDArray, point: Sequence[NDArray], sums: list[NDArray]) -> None:
        """Add G of the factors on the right, from U^atoms (2, columns, features)."""
        lengths = self.shape[len(self.rows) :]
        for term, part in zip(self.terms, self._parts(gradient, 1), strict=True):
            shape = (2, *_column_shape(term, len(self.rows)), *lengths)
            term.right.back(np.ascontiguousarray(part).reshape(shape), point, sums)

    def _parts(self, gradient: NDArray, axis: int) -> Iterator[NDArray]:
        edges = np.cumsum([term.n_columns for term in self.terms])[:-1]
        return iter(np.split(gradient, edges, axis=axis))


class Parts(NamedTuple):
    """What a split is made of: factors by name, sizes of letters, shares of terms."""

    numbers: Mapping[str, int]
    layouts: Sequence[Layout]
    sizes: Mapping[str, int]


def split(
    observation: Observation,
    shares: Sequence[Sequence[tuple[str, int]]],
    parts: Parts,
    rows: tuple[str, ...] | None = None,
    left: frozenset[str] | None = None,
) -> Split:
    """The matrices of an observed tensor with the fewest columns.

    Parameters
    ----------
    observation : Observation
    shares : for each term, pairs of a factor of shares and which one of them is the term's
    parts : Parts
    rows : tuple of str or None
        The row letters; None chooses them, always with the samples'.
    left : set of str or None
        The factors that are on the left; None chooses.
    """
    padding = observation.padding(parts.sizes)
    lengths = {x: parts.sizes[x] + 2 * padding[x] for x in observation.output}
    candidates = [rows] if rows is not None else list(_row_choices(observation.output))
    found = []
    for own in candidates:
        sides = [_choose_sides(term, own, lengths, parts, left) for term in observation.terms]
        found.append((_cost(own, sides, observation.output, lengths), own, sides))
    _, own, sides = min(found, key=lambda one: one[0])
    features = tuple(letter for letter in observation.output if letter not in own)
    terms = [
        _term_split(term, side[1], share, own, features, lengths, padding, parts)
        for term, side, share in zip(observation.terms, sides, shares, strict=True)
    ]
    shape = tuple(lengths[letter] for letter in (*own, *features))
    return Split(own, features, shape, tuple(terms))


def _row_choices(output: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Sets of row letters, all with the first letter, and not all letters if there are several."""
    for n in range(max(len(output) - 1, 1)):
        for others in combinations(output[1:], n):
            yield (output[0], *others)


def _cost(
    rows: tuple[str, ...], sides: list, output: tuple[str, ...], lengths: Mapping[str, int]
) -> tuple:
    """What is to be small: a copy of large X in another order first, then the time of a pass.

    The time of a cell is in that of one column, as measured: the likelihood takes that of some
    columns, and whatever is as large as one of the factors is gone over many times. Blocks of a
    kernel have the fewer rows the more features there are.
    """
    n_rows = math.prod(lengths[letter] for letter in rows)
    n_cells = math.prod(lengths[letter] for letter in output)
    n_features, turned = n_cells // n_rows, rows != output[: len(rows)]
    n_columns = sum(side[0] for side in sides)
    at_once = max(_LEAST_ROWS, _CELLS_AT_ONCE // n_features)
    overhead = 14 / at_once + 70 / n_features + 140 / n_rows
    large = n_cells > MOST_COPIED
    wide = 2 * n_columns * n_features > _MOST_ATOMS
    return large and turned, large and wide, 28 + n_columns * (1 + overhead), turned


def _choose_sides(
    term: Term,
    rows: tuple[str, ...],
    lengths: Mapping[str, int],
    parts: Parts,
    left: frozenset[str] | None,
) -> tuple[int, tuple[bool, ...]]:
    """Which uses are on the left, and how many columns that needs: the fewest possible."""
    choices = []
    for use in term.uses:
        has_row = bool(set(rows) & set(use.letters))
        has_feature = bool((set(lengths) - set(rows)) & set(use.letters))
        either = has_row == has_feature
        choices.append((True, False) if either else (has_row,))
        if left is not None:
            choices[-1] = (use.factor in left,)
    found = []
    for sides in product(*choices):
        columns = _columns(term.uses, sides, rows, lengths)
        sizes = [lengths[x[0]] if x[0] in lengths else parts.sizes[x] for x in columns]
        signed = any(
            side and parts.layouts[parts.numbers[use.factor]].signs == 2
            for use, side in zip(term.uses, sides, strict=True)
        )
        found.append((math.prod(sizes) * (1 + signed), sides))
    return min(found, key=lambda one: one[0])


def _columns(
    uses: Sequence[Use],
    sides: Sequence[bool],
    rows: tuple[str, ...],
    lengths: Mapping[str, int],
) -> tuple[str, ...]:
    """Labels of the columns: letters of both sides, and copies of those on the wrong side."""
    letters: list[dict[str, None]] = [{}, {}]
    for use, left in zip(uses, sides, strict=True):
        letters[left] |= dict.fromkeys(use.letters)
    latent = [x for x in letters[True] if x not in lengths and x in letters[False]]
    copies = [x for x in letters[True] if x in lengths and x not in rows]
    copies += [x for x in letters[False] if x in rows]
    return (*latent, *(x + _COPY for x in copies))


def _term_split(
    term: Term,
    sides: tuple[bool, ...],
    shares: Sequence[tuple[str, int]],
    rows: tuple[str, ...],
    features: tuple[str, ...],
    lengths: Mapping[str, int],
    padding: Mapping[str, int],
    parts: Parts,
) -> TermSplit:
    columns = _columns(term.uses, sides, rows, lengths)
    views: list[list[View]] = [[], []]
    signs: list[list[str]] = [[], []]
    for n, (use, left) in enumerate(zip(term.uses, sides, strict=True)):
        wrong = features if left else rows
        sign = f"{_SIGN}{n}"
        views[left].append(_view(use, parts, wrong, padding, sign))
        if views[left][-1].layout.signs == 2:
            signs[left].append(sign)
    for name, number in shares:
        view = _share_view(name, number, parts)
        known = {label for one in views[True] for label in one.labels}
        views[set(view.labels) <= known].append(view)
    fixed: list[list[tuple[NDArray, tuple[str, ...]]]] = [[], []]
    left_sign = tuple(signs[True])
    if len(left_sign) > 1:
        left_sign = (_SIGN + "left",)
        fixed[True].append((_parity(len(signs[True]), False), (*signs[True], *left_sign)))
    of_right = (*left_sign, *signs[False])
    fixed[False].append((_parity(len(of_right), term.subtracted), (*of_right, _SIGN)))
    for copy in (label for label in columns if label.endswith(_COPY)):
        eye = np.eye(lengths[copy[0]])
        fixed[copy[0] in rows].append((eye, (copy[0], copy)))
    outputs = (_SIGN, *columns, *left_sign, *features), (*rows, *columns, *left_sign)
    right, left_side = (
        Side(tuple(views[side]), tuple(fixed[side]), outputs[side]) for side in (False, True)
    )
    left_side = _with_ones(left_side, rows, lengths)
    n_columns = 2 ** len(left_sign) * math.prod(
        lengths[x[0]] if x[0] in lengths else parts.sizes[x] for x in columns
    )
    return TermSplit(left_side, right, n_columns)


def _with_ones(side: Side, rows: tuple[str, ...], lengths: Mapping[str, int]) -> Side:
    """The side with ones for letters that none of its operands has."""
    known = {label for view in side.views for label in view.labels}
    known |= {label for _, labels in side.fixed for label in labels}
    missing = [(np.ones(lengths[x]), (x,)) for x in rows if x not in known]
    return side._replace(fixed=(*side.fixed, *missing))


def _view(
    use: Use, parts: Parts, wrong: tuple[str, ...], padding: Mapping[str, int], sign: str
) -> View:
    """A use as an operand; letters of the wrong side are copies."""
    number = parts.numbers[use.factor]
    layout = parts.layouts[number]
    order = [n for n in layout.order if n >= 0 or layout.signs == 2]
    labels, lags, reaches = [], [], []
    for place, n in enumerate(order):
        if n < 0:
            labels.append(sign)
            continue
        axis = use.axes[n]
        labels.append(axis.letter + _COPY if axis.letter in wrong else axis.letter)
        if axis.lag:
            lags.append(axis.lag)
        if padding.get(axis.letter):
            n_lags = parts.sizes[axis.lag] if axis.lag else 1
            reaches.append(Reach(place, axis.letter, axis.lag, padding[axis.letter], n_lags))
        elif axis.lag:  # a single lag
            reaches.append(Reach(place, axis.letter, axis.lag, 0, 1))
    return View(number, layout, (*labels, *lags), tuple(reaches))


def _share_view(name: str, number: int, parts: Parts) -> View:
    """The share of one term, with the letters that its unit has beside those of the data."""
    factor = parts.numbers[name]
    layout = parts.layouts[factor]
    letters = tuple(layout.axes[n].letter for n in layout.role.given)
    return View(factor, layout, letters, (), number)


def _parity(n_signs: int, flipped: bool) -> NDArray:
    """1 where the last sign is that of the product of the others, or its opposite."""
    array = np.zeros((2,) * (n_signs + 1))
    for signs in product((0, 1), repeat=n_signs):
        array[(*signs, (sum(signs) + flipped) % 2)] = 1.0
    return array


def _without(shape: tuple[int, ...], place: int) -> tuple[int, ...]:
    return shape[:place] + shape[place + 1 :]


def _column_shape(term: TermSplit, n_row_letters: int) -> tuple[int, ...]:
    """Lengths of the labels of a term's columns."""
    lengths: dict[str, int] = {}
    for side in (term.left, term.right):
        for array, labels in side.fixed:
            lengths |= dict(zip(labels, array.shape, strict=True))
        for view in side.views:
            lengths |= _lengths(view)
    return tuple(lengths[label] for label in term.left.output[n_row_letters:])


def _lengths(view: View) -> dict[str, int]:
    """Length of each label of a view that cells see as it is, and of lags."""
    order = [n for n in view.layout.order if n >= 0 or view.layout.signs == 2]
    sizes = [2 if n < 0 else view.layout.sizes[n] for n in order]
    found = dict(zip(view.labels, sizes, strict=False))
    for reach in view.reaches:
        found.pop(view.labels[reach.place], None)
        if reach.lag:
            found[reach.lag] = reach.n_lags
    return found


# --- products of several small arrays -------------------------------------------------------------


def contract(
    arrays: Sequence[NDArray], labels: Sequence[tuple[str, ...]], output: tuple[str, ...]
) -> NDArray:
    """np.einsum by pairs, in the cheapest order; its sums do not depend on threads, as BLAS' do."""
    left = list(zip(arrays, labels, strict=True))
    shapes = tuple(array.shape for array in arrays)
    for pair, names, result in _order(tuple(labels), shapes, output):
        chosen = [left.pop(n) for n in sorted(pair, reverse=True)]
        numbers = {label: n for n, label in enumerate(names)}
        operands: list = []
        for array, own in chosen:
            operands += [array, [numbers[label] for label in own]]
        left.append((np.einsum(*operands, [numbers[label] for label in result]), result))
    return left[0][0]


@lru_cache(maxsize=1024)
def _order(
    labels: tuple[tuple[str, ...], ...],
    shapes: tuple[tuple[int, ...], ...],
    output: tuple[str, ...],
) -> tuple[tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]], ...]:
    """Which operands are multiplied one after the other: labels of each pair, and what stays."""
    numbers = {label: n for n, label in enumerate(dict.fromkeys(sum(labels, ())))}
    operands: list = []
    for shape, own in zip(shapes, labels, strict=True):
        operands += [np.broadcast_to(0.0, shape), [numbers[label] for label in own]]
    path = np.einsum_path(*operands, [numbers[label] for label in output], optimize="optimal")[0]
    left, steps = list(labels), []
    for pair in path[1:]:
        chosen = [left.pop(n) for n in sorted(pair, reverse=True)]
        names = tuple(dict.fromkeys(sum(chosen, ())))
        needed = set(output).union(*left)
        result = tuple(label for label in names if label in needed) if left else output
        left.append(result)
        steps.append((tuple(pair), names, result))
    return tuple(steps)
