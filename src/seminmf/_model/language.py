"""The language of tensor models: an einsum string, read and checked before anything else.

    model   = terms "->" letters            or {name: model, ...} for several observed tensors
    terms   = operands ("+" | "-") operands ...
    operand = [name ":"] letters            a letter may be a difference, "(t-d)"

An operand is a factor; its name is its letters, unless given. What is wrong is told in one sentence
that shows the place in the string, between » and «.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

# The name of the tensor of a model that observes one only.
ONLY = "X"


class Axis(NamedTuple):
    """An axis of a factor: a letter, or the difference of two, t − d."""

    letter: str
    lag: str = ""

    def __str__(self) -> str:
        return f"({self.letter}-{self.lag})" if self.lag else self.letter


class Use(NamedTuple):
    """A factor in a term, with the letters that its axes have there."""

    factor: str
    axes: tuple[Axis, ...]

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters that the use itself runs over, those of differences included."""
        return tuple(letter for axis in self.axes for letter in axis if letter)


class Term(NamedTuple):
    """A product of factors, which is added or subtracted."""

    uses: tuple[Use, ...]
    subtracted: bool

    @property
    def letters(self) -> set[str]:
        """All letters of the term."""
        return {letter for use in self.uses for letter in use.letters}

    @property
    def shifted(self) -> set[str]:
        """Letters that another one is subtracted from."""
        return {axis.letter for use in self.uses for axis in use.axes if axis.lag}


class Observation(NamedTuple):
    """An observed tensor: its name, its letters, and the terms that it is the sum of."""

    name: str
    output: tuple[str, ...]
    terms: tuple[Term, ...]

    def padding(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """How many gaps each letter has at both ends, so that every u + d is a cell."""
        most = dict.fromkeys(self.output, 0)
        for term in self.terms:
            for axis in (axis for use in term.uses for axis in use.axes if axis.lag):
                most[axis.letter] = max(most[axis.letter], sizes[axis.lag] - 1)
        return most


class Plan(NamedTuple):
    """A model as it was written."""

    observations: tuple[Observation, ...]

    @property
    def terms(self) -> list[Term]:
        """Those of all observations."""
        return [term for observation in self.observations for term in observation.terms]

    @property
    def factors(self) -> dict[str, tuple[Axis, ...]]:
        """Axes of all factors, by their names, as they are first written."""
        found: dict[str, tuple[Axis, ...]] = {}
        for use in (use for term in self.terms for use in term.uses):
            found.setdefault(use.factor, use.axes)
        return found

    @property
    def sample(self) -> str:
        """The letter that counts the samples."""
        return self.observations[0].output[0]

    @property
    def observed(self) -> list[str]:
        """Letters of the data."""
        return list(dict.fromkeys(letter for one in self.observations for letter in one.output))

    @property
    def latent(self) -> list[str]:
        """Letters that are in no data, in the order in which they are written."""
        uses = (use for term in self.terms for use in term.uses)
        letters = dict.fromkeys(letter for use in uses for letter in use.letters)
        return [letter for letter in letters if letter not in self.observed]

    @property
    def has_difference(self) -> bool:
        """Whether a term is subtracted."""
        return any(term.subtracted for term in self.terms)


def read(model: Any) -> Plan:
    """The plan of a model: of a string, or of a dict of strings by the names of tensors.

    Examples
    --------
    >>> plan = read("nr,jr,kr->njk")
    >>> list(plan.factors), plan.latent
    (['nr', 'jr', 'kr'], ['r'])
    """
    texts = {ONLY: model} if isinstance(model, str) else model
    if not isinstance(texts, Mapping) or not texts:
        raise ValueError(
            "model must be a string such as 'nr,jr->nj', or a dict of strings by the names of "
            f"observed tensors; found {model!r}."
        )
    for name, text in texts.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise ValueError(
                f"model must have strings as names and models; found {name!r}: {text!r}."
            )
    readings = {name: _Reader(text).observation(name) for name, text in texts.items()}
    _check_across(readings)
    return Plan(tuple(reading.observation for reading in readings.values()))


def sizes_of(
    plan: Plan, n_components: Any, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """How long each letter is: those of the data by their shapes, the others as they are given."""
    sizes = _latent_sizes(plan, n_components)
    for observation in plan.observations:
        shape = shapes[observation.name]
        if len(shape) != len(observation.output):
            raise ValueError(
                f"X must have an axis for each letter of '{''.join(observation.output)}'; found "
                f"the shape {tuple(shape)}{_of(plan, observation)}."
            )
        for letter, size in zip(observation.output, shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise ValueError(
                    f"Letter '{letter}' must have one size; found {sizes[letter]} and {size}, the "
                    f"latter on axis {observation.output.index(letter)} of the shape "
                    f"{tuple(shape)}{_of(plan, observation)}."
                )
    _check_alike(plan, sizes)
    return sizes


def axis_size(axis: Axis, sizes: Mapping[str, int]) -> int:
    """How long an axis is; t − d takes |t| + |d| − 1 values."""
    return sizes[axis.letter] + (sizes[axis.lag] - 1 if axis.lag else 0)


def _latent_sizes(plan: Plan, n_components: Any) -> dict[str, int]:
    """Sizes of the letters that are not of the data, from a number or a dict."""
    latent = plan.latent
    if not isinstance(n_components, Mapping):
        if len(latent) > 1:
            wanted = ", ".join(f"'{letter}': ..." for letter in latent)
            raise ValueError(
                f"n_components must be a dict {{{wanted}}}, because {len(latent)} letters of the "
                f"model have no size from the data; found {n_components!r}."
            )
        n_components = dict.fromkeys(latent, n_components)
    for letter in latent:
        size = n_components.get(letter)
        if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
            raise ValueError(
                f"n_components must give letter '{letter}' a size, an integer of at least 1; found "
                f"{'none' if letter not in n_components else repr(size)}."
            )
    for letter in n_components:
        if letter not in latent:
            why = (
                "whose size is that of the data" if letter in plan.observed else "not of the model"
            )
            raise ValueError(
                f"n_components must have sizes for {', '.join(map(repr, latent)) or 'no letter'}; "
                f"found one for {letter!r}, {why}."
            )
    return {letter: int(size) for letter, size in n_components.items()}


def _check_alike(plan: Plan, sizes: Mapping[str, int]) -> None:
    """Refuse a factor of two sizes."""
    for use in (use for term in plan.terms for use in term.uses):
        first = plan.factors[use.factor]
        for axis, other in zip(first, use.axes, strict=True):
            if axis_size(axis, sizes) != axis_size(other, sizes):
                raise ValueError(
                    f"Factor '{use.factor}' must have one shape; found {axis_size(axis, sizes)} "
                    f"for '{axis}' and {axis_size(other, sizes)} for '{other}' on the same axis."
                )


def _of(plan: Plan, observation: Observation) -> str:
    return f" of '{observation.name}'" if len(plan.observations) > 1 else ""


# --- reading one string -------------------------------------------------------------------------


class _Placed(NamedTuple):
    """A use, and where it is in the string."""

    use: Use
    start: int
    stop: int


class _Reading(NamedTuple):
    """An observation, with what is needed to show places in its string."""

    observation: Observation
    placed: list[_Placed]
    reader: _Reader


class _Reader:
    """Reads one string from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.placed: list[_Placed] = []

    def observation(self, name: str) -> _Reading:
        """The model of one observed tensor."""
        terms = [self._term(self._takes("-"))]
        while (found := self._peek()) in ("+", "-") and not self._ahead("->"):
            self.at += 1
            terms.append(self._term(found == "-"))
        if not self._ahead("->"):
            self.refuse("'->' and the letters of the data", self.at)
        self.at += 2
        start = self.at
        output = tuple(letter for letter in self.text[start:] if letter != " ")
        for n, letter in enumerate(output):
            if not letter.isalpha():
                self.refuse("letters after '->'", self.text.index(letter, start))
            if letter in output[:n]:
                self.refuse("each letter of the data once", self.text.rindex(letter))
        if not output:
            self.refuse("at least one letter after '->'", len(self.text))
        reading = _Reading(Observation(name, output, tuple(terms)), self.placed, self)
        self._check(reading)
        return reading

    def refuse(self, wanted: str, start: int, stop: int | None = None, found: str = "") -> NoReturn:
        """Say what is wanted, and show what was found instead."""
        stop = start + 1 if stop is None else stop
        shown = f"{self.text[:start]}»{self.text[start:stop]}«{self.text[stop:]}"
        raise ValueError(
            f"model must have {wanted}; found {found or 'something else'} in '{shown}'."
        )

    def _term(self, subtracted: bool) -> Term:
        uses = [self._use()]
        while self._takes(","):
            uses.append(self._use())
        return Term(tuple(uses), subtracted)

    def _use(self) -> Use:
        self._peek()
        start = self.at
        name = self._name()
        axes: list[Axis] = []
        while (found := self._peek()).isalpha() or found == "(":
            axes.append(self._difference() if found == "(" else Axis(self._letter()))
        if not axes:
            self.refuse("an operand, such as 'nr'", self.at, found="none")
        letters = "".join(str(axis) for axis in axes)
        stop = len(self.text[: self.at].rstrip())
        use = Use(name or letters, tuple(axes))
        for letter, count in Counter(use.letters).items():
            if count > 1:
                self.refuse("a letter once in an operand", start, stop, f"'{letter}' twice")
        self.placed.append(_Placed(use, start, stop))
        return use

    def _name(self) -> str:
        """The name before a colon, if there is one."""
        stop = self.at
        while stop < len(self.text) and (self.text[stop].isalnum() or self.text[stop] == "_"):
            stop += 1
        if stop == self.at or self.text[stop : stop + 1] != ":":
            return ""
        name, self.at = self.text[self.at : stop], stop + 1
        return name

    def _difference(self) -> Axis:
        start = self.at
        self.at += 1
        letter, minus, lag = self._letter(), self._takes("-"), self._letter()
        if not (minus and self._takes(")")):
            self.refuse("a difference of two letters, such as '(t-d)'", start, self.at)
        return Axis(letter, lag)

    def _letter(self) -> str:
        found = self._peek()
        if not found.isalpha():
            self.refuse("a letter", self.at, found=repr(found) if found else "the end")
        self.at += 1
        return found

    def _peek(self) -> str:
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _ahead(self, symbol: str) -> bool:
        self._peek()
        return self.text.startswith(symbol, self.at)

    def _takes(self, symbol: str) -> bool:
        found = self._ahead(symbol)
        self.at += found
        return found

    # --- what a string must have besides its form ---------------------------------------------

    def _check(self, reading: _Reading) -> None:
        output, placed = reading.observation.output, iter(reading.placed)
        for term in reading.observation.terms:
            own = [next(placed) for _ in term.uses]
            self._check_letters(output, term, own)
            self._check_readings(own)
            for place in own:
                self._check_differences(output, place)

    def _check_letters(self, output: tuple[str, ...], term: Term, own: list[_Placed]) -> None:
        """Refuse letters of the data that a term lacks, and those that are used once only."""
        counts = Counter(letter for use in term.uses for letter in use.letters)
        for letter in output:
            if letter not in counts:
                start, stop = own[0].start, own[-1].stop
                self.refuse(
                    f"letter '{letter}' of the data in each term", start, stop, "a term without it"
                )
        for place in own:
            for letter in place.use.letters:
                if counts[letter] == 1 and letter not in output:
                    self.refuse(
                        f"letter '{letter}' in the data or in a second operand",
                        place.start,
                        place.stop,
                        "it unused elsewhere",
                    )

    def _check_readings(self, own: list[_Placed]) -> None:
        """Refuse what may be one factor or two."""
        for n, place in enumerate(own):
            text = self.text[place.start : place.stop]
            if ":" not in text and any(place.use.factor == one.use.factor for one in own[:n]):
                letters = place.use.factor
                self.refuse(
                    f"names where '{letters}' is twice in a term ('A:{letters},A:{letters}' is one "
                    f"factor squared, 'A:{letters},B:{letters}' are two)",
                    place.start,
                    place.stop,
                    "two readings",
                )

    def _check_differences(self, output: tuple[str, ...], place: _Placed) -> None:
        """Refuse differences that are not of a letter of the data and a latent one."""
        for axis in place.use.axes:
            if axis.lag and (axis.letter not in output or axis.lag in output):
                turned = axis.lag in output and axis.letter not in output
                self.refuse(
                    "differences of a letter of the data less a latent one, so that sums of the "
                    "latter lead back to the data",
                    place.start,
                    place.stop,
                    "a cycle" if turned else f"'{axis}'",
                )


def _check_across(readings: Mapping[str, _Reading]) -> None:
    """Refuse a name with two kinds of axes, and letters that may be one factor or two."""
    first: dict[str, _Placed] = {}
    for place, reader in _all_placed(readings.values()):
        known = first.setdefault(place.use.factor, place)
        kinds = [[bool(axis.lag) for axis in one.use.axes] for one in (known, place)]
        if kinds[0] != kinds[1]:
            reader.refuse(
                f"factor '{place.use.factor}' with the same kinds of axes everywhere",
                place.start,
                place.stop,
                f"{len(kinds[1])} axes after {len(kinds[0])}"
                if len(kinds[0]) != len(kinds[1])
                else "a difference in one place only",
            )
    by_letters: dict[tuple[str, ...], str] = {}
    for place, reader in _all_placed(readings.values()):
        name, letters = place.use.factor, tuple(sorted(map(str, place.use.axes)))
        if name != "".join(map(str, place.use.axes)):
            continue
        other = by_letters.setdefault(letters, name)
        if other != name:
            reader.refuse(
                f"one order of letters, or names, for '{other}' and '{name}' (names that are the "
                "same are one factor)",
                place.start,
                place.stop,
                "two readings",
            )


def _all_placed(readings: Iterable[_Reading]) -> list[tuple[_Placed, _Reader]]:
    return [(place, reading.reader) for reading in readings for place in reading.placed]
