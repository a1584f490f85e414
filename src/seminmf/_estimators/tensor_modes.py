"""Which letters of a tensor model have rows for Newton's method, and what it needs of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .._algorithms.tensor_newton import Push, Receiver
from .._model.language import Observation
from .._model.network import Link
from .tensor_build import Blueprint, far_to_near, shares_name


class Rows(NamedTuple):
    """The factors of a letter, which are solved together, and where their scales go."""

    names: tuple[str, ...]
    pushes: tuple[Push, ...]
    constant: frozenset[str]


def rows_of(
    model: Blueprint, fixed: frozenset[str], constant: frozenset[tuple[str, str]]
) -> dict[str, Rows]:
    """By the letters that have rows; factors that are `fixed` must not move along.

    Those that stay altogether and are the same for all values of a letter are `constant` in it.

    None where letters are shifted: what the rows cannot reach decides there, and SQUAREM alone is
    as good and simpler.
    """
    found: dict[str, Rows] = {}
    if any(term.shifted for term in model.plan.terms):
        return found
    for letter in model.plan.observed:
        names = _factors_of(model, letter)
        still = frozenset(name for name in names if (name, letter) in constant)
        names_moving = [name for name in names if name not in still]
        pushes = tuple(_pushes(model, names_moving))
        touched = {n for push in pushes for n in (push.factor, *(r.factor for r in push.receivers))}
        moving = {model.names[n] for n in touched} | set(names_moving)
        if names_moving and not moving & fixed and _pushable(model, names_moving):
            found[letter] = Rows(tuple(names), pushes, still)
    return found


def tables_with(model: Blueprint, letter: str) -> list[Observation]:
    """Observed tensors that have a letter."""
    return [one for one in model.plan.observations if letter in one.output]


def _factors_of(model: Blueprint, letter: str) -> list[str]:
    """The factors with a letter, if all terms with it have one of them once, as it is; or none."""
    names: list[str] = []
    for observation in tables_with(model, letter):
        for term in observation.terms:
            own = [use for use in term.uses if letter in use.letters]
            if len(own) != 1 or letter in term.shifted:
                return []
            if sum(use.factor == own[0].factor for use in term.uses) > 1:
                return []
            names.append(own[0].factor)
    # The same axis of the same factor everywhere: not so where factors are tied.
    for term in model.plan.terms:
        for use in term.uses:
            if use.factor in names and use.axes != model.plan.factors[use.factor]:
                return []
    return list(dict.fromkeys(names))


def _pushable(model: Blueprint, names: Sequence[str]) -> bool:
    """Whether scales of these factors, and of what receives them, change nothing else."""
    return all(
        _is_gauge(model, link) for name in _reached(model, names) for link in _links(model, name)
    )


def _is_gauge(model: Blueprint, link: Link) -> bool:
    """Whether each term with the receiver has the factor, or takes the scale by its own share."""
    plan, network = model.plan, model.network
    if link.receiver in network.shared_units:
        return all(str(plan.factors[link.receiver][n]) in plan.latent for n in link.axes)
    for term in plan.terms:
        names = [use.factor for use in term.uses]
        if link.receiver in names and (
            names.count(link.factor) != 1 or names.count(link.receiver) != 1
        ):
            return False
    own = [one for one in network.links if one.factor == link.factor]
    return len({one.receiver for one in own}) == len(own)


def _links(model: Blueprint, name: str) -> list[Link]:
    return [link for link in model.network.links if link.factor == name]


def _reached(model: Blueprint, names: Sequence[str]) -> list[str]:
    """Factors that sum to 1 among these and those that their scales go into, far ones first."""
    reached, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [link.receiver for link in _links(model, name)]
    return [name for name in far_to_near(model.network) if name in reached]


def _pushes(model: Blueprint, names: Sequence[str]) -> Iterator[Push]:
    """The way of the scales of these factors to the unit."""
    shared: dict[str, None] = {}
    for name in _reached(model, names):
        receivers = []
        for link in _links(model, name):
            if link.receiver in model.network.shared_units:
                shared[link.receiver] = None
                receivers.append(_share_receiver(model, link))
            else:
                receivers.append(Receiver(model.names.index(link.receiver), link.axes))
        yield Push(model.names.index(name), tuple(dict.fromkeys(receivers)))
    for unit in shared:
        latent = _latent_axes(model, unit)
        receiver = Receiver(model.names.index(unit), tuple(latent))
        yield Push(model.names.index(shares_name(unit)), (receiver,))


def _share_receiver(model: Blueprint, link: Link) -> Receiver:
    """Shares of those terms of a unit that have the factor."""
    latent = _latent_axes(model, link.receiver)
    axes = tuple(latent.index(n) for n in link.axes)
    picks = tuple(
        n
        for n, term in enumerate(model.network.shared_units[link.receiver])
        if any(use.factor == link.factor for use in model.plan.terms[term].uses)
    )
    return Receiver(model.names.index(shares_name(link.receiver)), axes, picks)


def _latent_axes(model: Blueprint, unit: str) -> list[int]:
    plan = model.plan
    return [n for n, axis in enumerate(plan.factors[unit]) if str(axis) in plan.latent]
