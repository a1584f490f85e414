"""Which factors sum to 1, and over which axes: each term as a Bayesian network.

One factor of a term, the unit, is free: it has the unit of X. Every other one is a conditional
distribution p(N | C) of some of its letters given the others. All counts of a term then sum to
Σ unit, whatever the other factors are, and EM has closed steps. Where summing to 1 would be a
constraint, and not just a choice of scale, the factor stays free, with a gamma prior of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .language import Axis, Observation, Plan, Term, Use


class Role(NamedTuple):
    """Positions of a factor's axes: it sums to 1 over `new` for each cell of `given`."""

    given: tuple[int, ...]
    new: tuple[int, ...]

    @property
    def is_free(self) -> bool:
        """Whether it does not sum to 1."""
        return not self.new


class Link(NamedTuple):
    """Where the scale of a factor that sums to 1 goes, in one term.

    Attributes
    ----------
    factor, receiver : str
    axes : tuple of int
        Axes of the receiver, one for each axis that the factor is given.
    """

    factor: str
    receiver: str
    axes: tuple[int, ...]


class Network(NamedTuple):
    """The roles of all factors.

    Attributes
    ----------
    roles : dict
        By the names of factors.
    units : tuple of str
        The unit of each term.
    closed : tuple of bool
        Whether all other factors of a term sum to 1.
    links : tuple of Link
        From the factors that are farthest from a unit to those next to it.
    """

    roles: dict[str, Role]
    units: tuple[str, ...]
    closed: tuple[bool, ...]
    links: tuple[Link, ...]

    @property
    def shared_units(self) -> dict[str, tuple[int, ...]]:
        """Units of several terms, and which terms these are.

        Unless each term had a share of its own, all would have the same mass.
        """
        found: dict[str, tuple[int, ...]] = {}
        for unit in dict.fromkeys(self.units):
            terms = tuple(n for n, one in enumerate(self.units) if one == unit)
            if len(terms) > 1 and all(self.closed[n] for n in terms):
                found[unit] = terms
        return found

    def is_exposed(self, name: str, terms: Iterable[Term]) -> bool:
        """Whether what a free factor is multiplied by does not simply sum to 1."""
        return any(
            not closed
            for closed, term in zip(self.closed, terms, strict=True)
            if any(use.factor == name for use in term.uses)
        )


class _Step(NamedTuple):
    """A use on the walk through a term, and which of its axes are new there."""

    use: Use
    new: tuple[int, ...]
    before: tuple[Use, ...]


def derive(
    plan: Plan,
    *,
    unit: str | None = None,
    frozen: frozenset[str] = frozenset(),
    loose: frozenset[str] = frozenset(),
) -> Network:
    """The network of a model.

    Parameters
    ----------
    plan : Plan
    unit : str or None
        The factor that is free; None for that with the letter of the samples.
    frozen : set of str
        Factors that are known altogether, and so cannot have the unit of X.
    loose : set of str
        Factors that must not be brought to a sum of 1.
    """
    if unit is not None and unit not in plan.factors:
        raise ValueError(
            f"unit must be None or one of {', '.join(map(repr, plan.factors))}; found {unit!r}."
        )
    walks = [
        list(_walk(term, _unit_of(observation, term, unit, frozen)))
        for observation in plan.observations
        for term in observation.terms
    ]
    free = _free_factors(plan, walks, loose)
    _refuse_tied(plan, free)
    roles = {name: _role(name, axes, walks, free) for name, axes in plan.factors.items()}
    return Network(
        roles,
        tuple(walk[0].use.factor for walk in walks),
        tuple(all(step.use.factor not in free for step in walk[1:]) for walk in walks),
        tuple(_links(walks, free)),
    )


def _unit_of(observation: Observation, term: Term, asked: str | None, frozen: frozenset) -> Use:
    """The use of a term that has the unit of X: with the samples' letter, if one may be."""
    names = [use.factor for use in term.uses]
    if asked in names:
        return term.uses[names.index(asked)]

    def unsuitable(use: Use) -> tuple[bool, bool, bool]:
        has_samples = observation.output[0] in (axis.letter for axis in use.axes)
        return names.count(use.factor) > 1, use.factor in frozen, not has_samples

    return min(term.uses, key=unsuitable)


def _walk(term: Term, unit: Use) -> Iterator[_Step]:
    """All uses of a term, each with what is new in it: next those that touch what is known."""
    # t follows from t − d and d, wherever else it stands.
    known = term.shifted | set(map(str, unit.axes))
    left = list(term.uses)
    left.remove(unit)
    done = [unit]
    yield _Step(unit, (), ())
    while left:
        use = next((use for use in left if known & set(map(str, use.axes))), left[0])
        new = tuple(n for n, axis in enumerate(use.axes) if str(axis) not in known)
        yield _Step(use, new, tuple(done))
        left.remove(use)
        done.append(use)
        known |= set(map(str, use.axes))


def _free_factors(plan: Plan, walks: list[list[_Step]], loose: frozenset[str]) -> set[str]:
    """Factors that do not sum to 1: units, and those for which it would be a constraint."""
    free = set(loose)
    seen: dict[str, tuple[int, ...]] = {}
    for walk in walks:
        free.add(walk[0].use.factor)
        for step in walk[1:]:
            name = step.use.factor
            if seen.setdefault(name, step.new) != step.new or not step.new or not _receiver(step):
                free.add(name)
    while True:
        # A sum over new letters is not 1 times the rest where a free factor looks at them.
        more = {name for walk in walks for name in _tainted(walk, free)} - free
        if not more:
            return free
        free |= more


def _tainted(walk: list[_Step], free: set[str]) -> Iterator[str]:
    """Factors of a term whose new letters are also those of a free factor beside the unit."""
    letters: set[str] = set()
    for step in walk[1:]:
        if step.use.factor in free:
            letters |= set(map(str, step.use.axes))
    for step in reversed(walk[1:]):
        if any(str(step.use.axes[n]) in letters for n in step.new):
            letters |= set(map(str, step.use.axes))
            yield step.use.factor


def _receiver(step: _Step) -> Use | None:
    """The factor next to the unit that a scale for each given cell can be moved to."""
    given = {str(axis) for n, axis in enumerate(step.use.axes) if n not in step.new}
    for use in step.before:
        if given <= set(map(str, use.axes)) and use.factor != step.use.factor:
            return use
    return None


def _role(name: str, axes: tuple[Axis, ...], walks: list[list[_Step]], free: set[str]) -> Role:
    new: tuple[int, ...] = ()
    if name not in free:
        new = next(step.new for walk in walks for step in walk if step.use.factor == name)
    return Role(tuple(n for n in range(len(axes)) if n not in new), new)


def _links(walks: list[list[_Step]], free: set[str]) -> Iterator[Link]:
    """Where scales go, from the far end of each term."""
    found: dict[Link, None] = {}
    for walk in walks:
        for step in reversed(walk[1:]):
            receiver = _receiver(step)
            if step.use.factor in free or receiver is None:
                continue
            names = [str(axis) for axis in receiver.axes]
            given = (str(axis) for n, axis in enumerate(step.use.axes) if n not in step.new)
            axes = tuple(names.index(axis) for axis in given)
            found[Link(step.use.factor, receiver.factor, axes)] = None
    return iter(found)


def _refuse_tied(plan: Plan, free: set[str]) -> None:
    """Refuse a factor that is free and more than once in a term: its sums are not closed."""
    for term in plan.terms:
        names = [use.factor for use in term.uses]
        for name in free.intersection(names):
            if names.count(name) > 1:
                shown = ",".join(
                    f"»{use.factor}:{''.join(map(str, use.axes))}«"
                    if use.factor == name
                    else "".join(map(str, use.axes))
                    for use in term.uses
                )
                raise ValueError(
                    f"model must have a factor more than once in a term only where it sums to 1, "
                    f"with another one for the unit of X (such as 'r,A:ir,A:jr->ij'); found "
                    f"'{name}', which would be free, in '{shown}'."
                )
