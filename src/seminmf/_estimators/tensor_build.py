"""From a tensor model and what users give of its factors to the problem that algorithms see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._algorithms.problem import Problem
from .._algorithms.tensor import NoiseColumn, Table
from .._data.source import Data
from .._model.factors import Layout, TensorFactor
from .._model.language import Axis, Observation, Plan, axis_size
from .._model.model import Model, Priors
from .._model.network import Link, Network, Role, derive
from .._model.priors import Dirichlet, Gamma
from .._model.split import Parts, Split, split

# The name of the factor that has the shares of the terms of a unit.
_SHARES = "shares of "
# A Dirichlet shape next to 0, for entries that are known to be 0.
_NO_SHAPE = 1e-30
_NO_PRIORS = Priors.of(1.0, 0.0, 1.0)


def shares_name(unit: str) -> str:
    """The name of the shares of the terms of a unit."""
    return _SHARES + unit


class Given(NamedTuple):
    """What users give of a factor, as arrays (signs, *sizes).

    Attributes
    ----------
    parts : array
        Start values, NaN where there are none.
    frozen : boolean array
        Entries that keep them.
    """

    parts: NDArray
    frozen: NDArray

    @property
    def is_frozen(self) -> bool:
        """Whether all entries keep their values."""
        return bool(self.frozen.all())

    def suits(self, role: Role) -> bool:
        """Whether what is frozen leaves the sums over `new` axes free, or is all of a sum."""
        new = (0, *(n + 1 for n in role.new))
        whole = self.frozen.all(axis=new, keepdims=True)
        return bool(np.all(~self.frozen | whole | (self.parts == 0)))

    def sums(self, role: Role, *, frozen_only: bool) -> NDArray:
        """Sums over the new axes; 1 where they are not known, or 0."""
        new = (0, *(n + 1 for n in role.new))
        sums = self.parts.sum(axis=new, keepdims=True)
        known = self.frozen.all(axis=new, keepdims=True) if frozen_only else True
        return np.where(known & (sums > 0), sums, 1.0)


class Blueprint(NamedTuple):
    """A model with all that follows from its string, sizes and signs.

    Attributes
    ----------
    plan : Plan
    sizes : dict of int
        By letter.
    network : Network
    names : tuple of str
        Of all factors, those of shares last.
    layouts : tuple of Layout
    """

    plan: Plan
    sizes: dict[str, int]
    network: Network
    names: tuple[str, ...]
    layouts: tuple[Layout, ...]

    def n_fitted(self, factors: Sequence[TensorFactor]) -> int:
        """How many numbers a fit chooses: entries, less what is frozen and sums that are 1."""
        number = 0
        for factor in factors:
            free = (~factor.frozen).sum() / factor.layout.signs
            sums = 0 if factor.is_free else factor.layout.shape[1]
            number += max(int(free) - sums, 0)
        return number

    def layout(self, name: str) -> Layout:
        """That of a factor."""
        return self.layouts[self.names.index(name)]

    def resized(self, sizes: dict[str, int]) -> Blueprint:
        """The same for data of other sizes."""
        factors = self.plan.factors
        layouts = [
            layout._replace(sizes=tuple(axis_size(axis, sizes) for axis in factors[name]))
            if name in factors
            else layout
            for name, layout in zip(self.names, self.layouts, strict=True)
        ]
        return self._replace(sizes=sizes, layouts=tuple(layouts))

    def terms_of(self, observation: Observation) -> range:
        """Numbers of the terms of an observed tensor."""
        before = 0
        for one in self.plan.observations:
            if one is observation:
                break
            before += len(one.terms)
        return range(before, before + len(observation.terms))

    def shares_of(self, term: int) -> list[tuple[str, int]]:
        """The factor of shares that a term has, and which one of them is its own."""
        unit = self.network.units[term]
        terms = self.network.shared_units.get(unit, ())
        return [(shares_name(unit), terms.index(term))] if term in terms else []

    def split(
        self,
        observation: Observation,
        rows: tuple[str, ...] | None = None,
        left: frozenset[str] | None = None,
    ) -> Split:
        """An observed tensor as a matrix."""
        numbers = {name: n for n, name in enumerate(self.names)}
        shares = [self.shares_of(term) for term in self.terms_of(observation)]
        return split(observation, shares, Parts(numbers, self.layouts, self.sizes), rows, left)

    def packed(self, parts: Mapping[str, NDArray], weights: Mapping[str, NDArray]) -> list[NDArray]:
        """Arrays inside, from parts of factors and weights of terms."""
        shares = {shares_name(unit): np.moveaxis(own, 0, -1)[None] for unit, own in weights.items()}
        known = {**parts, **shares}
        return [self.layout(name).pack(known[name]) for name in self.names]

    def table_weights(self, arrays: Sequence[NDArray]) -> dict[str, NDArray]:
        """Shares (terms, *latent cells) by the names of shared units."""
        found = {}
        for unit in self.network.shared_units:
            n = self.names.index(shares_name(unit))
            parts = self.layouts[n].unpack(arrays[n])[0]
            found[unit] = np.moveaxis(parts, -1, 0)
        return found


def blueprint(
    plan: Plan,
    sizes: dict[str, int],
    signed: Sequence[str],
    unit: str | None,
    given: Mapping[str, Given],
) -> Blueprint:
    """What follows from a plan, once all is known that decides which factors sum to 1."""
    frozen = frozenset(name for name, own in given.items() if own.is_frozen)
    loose: frozenset[str] = frozenset()
    while True:
        network = derive(plan, unit=unit, frozen=frozen, loose=loose)
        more = frozenset(_not_summing(plan, network, given))
        more = (more | frozenset(_cannot_push(network, given))) - loose
        if not more:
            return drawn(plan, sizes, signed, network)
        loose |= more


def drawn(plan: Plan, sizes: dict[str, int], signed: Sequence[str], network: Network) -> Blueprint:
    """The blueprint of a network."""
    layouts = {
        name: _layout(plan, axes, sizes, 2 if name in signed else 1, network.roles[name])
        for name, axes in plan.factors.items()
    }
    for name, terms in network.shared_units.items():
        layouts[shares_name(name)] = _share_layout(plan, name, len(terms), sizes)
    return Blueprint(plan, sizes, network, tuple(layouts), tuple(layouts.values()))


def _not_summing(plan: Plan, network: Network, given: Mapping[str, Given]) -> Iterator[str]:
    """Factors that cannot be brought to a sum of 1, for what is frozen of them."""
    for name, own in given.items():
        role = network.roles[name]
        if role.is_free or not own.frozen.any():
            continue
        if not own.suits(role) or (
            np.any(own.sums(role, frozen_only=True) != 1)
            and not all(
                _takes_scale(plan, network, link) for link in network.links if link.factor == name
            )
        ):
            yield name


def _cannot_push(network: Network, given: Mapping[str, Given]) -> Iterator[str]:
    """Factors whose scale would have to go into what is frozen: a sum of 1 would be a constraint.

    What is known to be 0 takes any scale.
    """
    for link in network.links:
        receiver, own = given.get(link.receiver), given.get(link.factor)
        if receiver is None:
            continue
        held = receiver.frozen & (receiver.parts != 0)
        others = tuple(n for n in range(1, held.ndim) if n - 1 not in link.axes)
        cells = held.any(axis=(0, *others))
        if own is not None:
            role = network.roles[link.factor]
            known = np.asarray(own.frozen.all(axis=(0, *(n + 1 for n in role.new))))
            cells = cells & ~known.transpose(tuple(np.argsort(link.axes)))
        if np.any(cells):
            yield link.factor


def _takes_scale(plan: Plan, network: Network, link: Link) -> bool:
    """Whether a scale that is moved along a link changes no term without the factor."""
    if link.receiver in network.shared_units:
        letters = [str(plan.factors[link.receiver][n]) for n in link.axes]
        return set(letters) <= set(plan.latent)
    return all(
        link.factor in names
        for names in ([use.factor for use in term.uses] for term in plan.terms)
        if link.receiver in names
    )


def _layout(
    plan: Plan, axes: tuple[Axis, ...], sizes: Mapping[str, int], signs: int, role: Role
) -> Layout:
    letters = [str(axis) for axis in axes]
    sample = letters.index(plan.sample) if role.is_free and plan.sample in letters else None
    return Layout(axes, tuple(axis_size(axis, sizes) for axis in axes), signs, role, sample)


def _share_layout(plan: Plan, unit: str, n_terms: int, sizes: Mapping[str, int]) -> Layout:
    """Shares sum to 1 over the terms, for each cell of the latent letters of the unit."""
    latent = [axis for axis in plan.factors[unit] if str(axis) in plan.latent]
    n = len(latent)
    axes = (*latent, Axis("#"))
    lengths = (*(sizes[axis.letter] for axis in latent), n_terms)
    return Layout(axes, lengths, 1, Role(tuple(range(n)), (n,)))


# --- scales: users have their own units for what is frozen ----------------------------------------


class Scales(NamedTuple):
    """By what known factors were divided to sum to 1, and where that went.

    Attributes
    ----------
    by_factor : dict of arrays
        In the order in which they were divided, with the shape of parts.
    """

    by_factor: dict[str, NDArray]


def scaled_in(model: Blueprint, given: Mapping[str, Given]) -> tuple[dict[str, NDArray], Scales]:
    """Given values, brought to where factors sum to 1; and the scales of frozen ones."""
    parts = {name: own.parts.copy() for name, own in given.items()}
    frozen: dict[str, NDArray] = {}
    for name in far_to_near(model.network):
        if name not in given:
            continue
        own, role = given[name]._replace(parts=parts[name]), model.network.roles[name]
        sums = own.sums(role, frozen_only=False)
        frozen[name] = own.sums(role, frozen_only=True)
        parts[name] = parts[name] / sums
        for link in _receivers(model.network, name):
            if link.receiver in parts and link.receiver not in model.network.shared_units:
                parts[link.receiver] = parts[link.receiver] * _spread(model, link, sums)
    return parts, Scales({name: sums for name, sums in frozen.items() if np.any(sums != 1)})


def scaled_out(
    model: Blueprint, parts: dict[str, NDArray], weights: dict[str, NDArray], scales: Scales
) -> None:
    """Give frozen factors their own units back, in place; what is next to the unit loses them."""
    for name, sums in reversed(scales.by_factor.items()):
        parts[name] = parts[name] * sums
        for link in _receivers(model.network, name):
            if link.receiver in weights:
                _rescale_shares(model, link, sums, weights[link.receiver])
            else:
                parts[link.receiver] = parts[link.receiver] / _spread(model, link, sums)


def far_to_near(network: Network) -> list[str]:
    """Factors that sum to 1, each after those whose scales it receives."""
    left, order = list(dict.fromkeys(link.factor for link in network.links)), []
    while left:
        waiting = {link.receiver for link in network.links if link.factor in left}
        ready = next((name for name in left if name not in waiting), left[0])
        left.remove(ready)
        order.append(ready)
    return order


def _receivers(network: Network, name: str) -> list[Link]:
    """Where the scale of a factor goes, each place once."""
    found = {link.receiver: link for link in network.links if link.factor == name}
    return list(found.values())


def _spread(model: Blueprint, link: Link, sums: NDArray) -> NDArray:
    """Sums of a factor, along the axes of its receiver."""
    layout, role = model.layout(link.receiver), model.network.roles[link.factor]
    cells = sums.reshape([sums.shape[n + 1] for n in role.given])
    order = np.argsort(link.axes)
    shape = [1] * (1 + len(layout.axes))
    for n in link.axes:
        shape[n + 1] = layout.sizes[n]
    return cells.transpose(order).reshape(shape)


def _rescale_shares(model: Blueprint, link: Link, sums: NDArray, shares: NDArray) -> None:
    """Divide the shares of those terms of a unit that have the factor."""
    plan, spread = model.plan, _spread(model, link, sums)
    latent = [n for n, axis in enumerate(plan.factors[link.receiver]) if str(axis) in plan.latent]
    shape = [spread.shape[n + 1] for n in latent]
    for n, term in enumerate(model.network.shared_units[link.receiver]):
        if any(use.factor == link.factor for use in plan.terms[term].uses):
            shares[n] /= spread.reshape(shape)


# --- factors with their priors --------------------------------------------------------------------


class PriorValues(NamedTuple):
    """Parameters of the priors of one factor: numbers, or arrays that broadcast to its parts."""

    shape: NDArray
    rate: NDArray


def tensor_factors(
    model: Blueprint,
    priors: Mapping[str, PriorValues],
    given: Mapping[str, Given],
    known: Mapping[str, NDArray],
    weights: NDArray,
    *,
    variational: bool,
) -> tuple[TensorFactor, ...]:
    """All factors. `known` has the values of those that are given, as they are inside."""
    found = []
    for name, layout in zip(model.names, model.layouts, strict=True):
        frozen = np.zeros(layout.shape, dtype=bool)
        values = np.zeros(layout.shape)
        if name in given and given[name].frozen.any():
            frozen = layout.pack(given[name].frozen)
            values = np.where(frozen, layout.pack(known[name]), 0.0)
        own = priors.get(name, PriorValues(np.ones(()), np.ones(())))
        exposed = layout.role.is_free and model.network.is_exposed(name, model.plan.terms)
        prior = _prior(layout, own, frozen, values, variational)
        rows = np.ones(1) if layout.sample is None else weights
        found.append(TensorFactor(name, layout, prior, frozen, values, exposed, rows))
    return tuple(found)


def _prior(
    layout: Layout, own: PriorValues, frozen: NDArray, known: NDArray, variational: bool
) -> Gamma | Dirichlet:
    shape = _packed(layout, own.shape)
    if layout.role.is_free:
        return Gamma(shape, _packed(layout, own.rate))
    if frozen.any():
        # What is known to be 0 counts nothing; a whole sum that is known does not move.
        zero = frozen & (known == 0)
        shape = np.where(zero, _NO_SHAPE if variational else 1.0, shape)
    return Dirichlet(shape)


def _packed(layout: Layout, values: NDArray) -> NDArray:
    """A parameter in the layout inside; one number stays one."""
    if values.size == 1:
        return values.reshape((1,) * len(layout.shape)).astype(np.float64)
    parts = values if values.ndim == len(layout.sizes) + 1 else values[None]
    return layout.pack(parts.astype(np.float64))


# --- tables ---------------------------------------------------------------------------------------


class NoiseOf(NamedTuple):
    """Noise of an observed tensor: rates for each value of a letter, in units of computations."""

    letter: str
    rates: NDArray


def table(
    model: Blueprint,
    observation: Observation,
    own: Split,
    data: Data,
    likelihood: Any,
    noise: NoiseOf | None,
    executor: Any,
) -> Table:
    """An observed tensor with its data, as algorithms see it."""
    column = None
    n_columns = own.n_columns
    if noise is not None:
        column = _noise_column(model, observation, own, noise)
        likelihood = likelihood.with_roots_above(2 * float(noise.rates.min()))
        n_columns += 1
    matrix = Model.of(likelihood, _NO_PRIORS, np.zeros(n_columns, dtype=bool))
    return Table(observation.name, own, Problem(matrix, data, executor), column)


def _noise_column(
    model: Blueprint, observation: Observation, own: Split, noise: NoiseOf
) -> NoiseColumn:
    padding = observation.padding(model.sizes)
    sides = []
    for letters in (own.rows, own.features):
        lengths = [model.sizes[x] + 2 * padding[x] for x in letters]
        column = np.ones(lengths)
        if noise.letter in letters:
            levels = np.pad(noise.rates, padding[noise.letter], mode="edge")
            place = letters.index(noise.letter)
            column *= levels.reshape([-1 if n == place else 1 for n in range(len(letters))])
        sides.append(column.reshape(-1))
    if noise.letter not in observation.output:
        sides[1] *= noise.rates
    return NoiseColumn(*sides)


def unfolded(model: Blueprint, observation: Observation, own: Split, array: NDArray) -> NDArray:
    """A tensor as (rows, features), with gaps where differences of letters lead beyond its ends."""
    padding = observation.padding(model.sizes)
    lengths = [(padding[x], padding[x]) for x in observation.output]
    if any(most for most, _ in lengths):
        array = np.pad(array, lengths, constant_values=np.nan)
    order = [observation.output.index(x) for x in (*own.rows, *own.features)]
    return array.transpose(order).reshape(own.n_rows, own.n_features)


def folded(model: Blueprint, observation: Observation, own: Split, matrix: NDArray) -> NDArray:
    """The tensor of a matrix (rows, features, ...), without the gaps at its ends."""
    padding = observation.padding(model.sizes)
    letters = (*own.rows, *own.features)
    array = matrix.reshape(*own.shape, *matrix.shape[2:])
    array = array[tuple(slice(padding[x], padding[x] + model.sizes[x]) for x in letters)]
    order = [letters.index(x) for x in observation.output]
    return array.transpose(*order, *range(len(order), array.ndim))
