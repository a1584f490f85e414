"""Sections on the components: sizes, features, and samples that show them best."""

from __future__ import annotations

from ..._views.markup import Markup, element, fragment
from ..findings.components import LEVEL, Component, Components
from ..findings.examples import Examples
from ..findings.fit import Fit
from .bars import share_bar, signed_bars
from .heat_map import legend, signed_heat_map
from .tables import Cell, Column, count_cell, number_cell, ratio_cell, sortable
from .wording import count, percent, shortened

_N_STRONGEST = 4
_N_OPEN = 12
_LONGEST_NAME = 28


def components_section(components: Components, fit: Fit) -> Markup:
    """Table, bars and heat map of the components."""
    n_shown = len(components.shown)
    fewer = "" if n_shown == fit.n_components else f" The {n_shown} largest are shown."
    return fragment(
        element(
            "p",
            "In the order of their shares of all that is put into "
            f"{count(fit.n_samples, 'sample')} of the fit. An amount is what a component puts into "
            "a sample, the sum of |activation × component| over the features; “R² lost” is what R² "
            "of the fit falls by when a component is taken out and the others stay. The numbers "
            "are those of ",
            element("code", "components_"),
            f", from 0.{fewer}{_about_returned(components)}",
        ),
        _components_table(components.shown, bool(components.n_draws)),
        element("h3", "Strongest features"),
        element("p", _about_bars(components), class_="note"),
        _cards([_card(component) for component in components.shown]),
        element("h3", "All features" if _is_whole(components) else "Many features"),
        element("p", _about_heat_map(components), class_="note"),
        legend(),
        signed_heat_map("What each component adds to the mean sample", components.heat_map),
    )


def _about_returned(components: Components) -> str:
    if not components.n_draws:
        return ""
    return (
        f" “Came back” is in how many of {count(components.n_draws, 'fit')} to data like these the "
        "component was found again: the bootstrap."
    )


def _components_table(shown: list[Component], with_returned: bool) -> Markup:
    columns = (
        Column("No."),
        Column("Share", order="descending"),
        Column("R² lost"),
        *([Column("Came back")] if with_returned else []),
        Column("Cluster size"),
        Column("Mean amount"),
        Column("Positive"),
        Column("Strongest features", numeric=False),
    )
    largest = shown[0].share or 1.0
    rows = [
        (
            Cell(f"{component.index}", component.index),
            _with_bar(component.share, component.share / largest, "neutral", "track"),
            ratio_cell(component.r2_drop),
            *([Cell(percent(component.returned), component.returned)] if with_returned else []),
            count_cell(component.cluster_size),
            number_cell(component.mean_amount),
            _with_bar(component.positive, component.positive, "positive", "negative"),
            Cell(_signed_names(component)),
        )
        for component in shown
    ]
    return sortable("Components by share", columns, rows)


def _with_bar(share: float, length: float, inside: str, outside: str) -> Cell:
    """A share in percent, with a bar unless it is no number."""
    bar = share_bar(length, inside, outside) if length >= 0 else None
    return Cell([bar, element("span", percent(share))], share)


def _signed_names(component: Component) -> list[Markup]:
    """The strongest features, each with its sign."""
    return [
        element(
            "span",
            "+" if bar.value >= 0 else "−",
            shortened(bar.feature, _LONGEST_NAME),
            class_="chip positive" if bar.value >= 0 else "chip negative",
        )
        for bar in component.bars[:_N_STRONGEST]
        if bar.value
    ]


def _about_bars(components: Components) -> str:
    text = (
        "What a component adds to the mean sample, in the unit of the data: its entries times its "
        "mean activation."
    )
    if components.scaled:
        text += " The bars are as long as the values in units of the features’ scales."
    if components.with_intervals:
        text += (
            f" Thin lines are {LEVEL:.0%} intervals of the entries; an entry whose line crosses "
            "zero may have either sign."
        )
    return text


def _about_heat_map(components: Components) -> str:
    text = (
        "The same for each feature. Colours are relative to the strongest of their row; point "
        "at a cell, or move with the arrow keys, to see its value."
    )
    if not _is_whole(components):
        n_shown = len(components.heat_map.features)
        text += f" Of {count(components.n_features)} features the {n_shown} that stand out most."
    return text


def _is_whole(components: Components) -> bool:
    return len(components.heat_map.features) == components.n_features


def _cards(cards: list[Markup]) -> Markup:
    """Side by side; the last of many are there on demand."""
    first, rest = cards[:_N_OPEN], cards[_N_OPEN:]
    summary = element("summary", f"{count(len(rest), 'more component')}")
    return fragment(
        element("div", first, class_="cards"),
        element("details", summary, element("div", rest, class_="cards")) if rest else None,
    )


def _card(component: Component) -> Markup:
    name = f"Component {component.index}"
    return element(
        "article",
        element("h4", name, element("span", percent(component.share), class_="aside")),
        signed_bars(f"Strongest features of component {component.index}", component.bars),
        class_="card",
    )


def examples_section(examples: Examples) -> Markup:
    """Samples that are most nearly one component alone."""
    whose = "data of this report" if examples.from_data else "fit"
    cards = []
    for k, nearest in examples.nearest.items():
        items = [
            element(
                "li",
                element("span", shortened(example.sample, _LONGEST_NAME), title=example.sample),
                element("span", percent(example.share), class_="aside"),
            )
            for example in nearest
        ]
        content = element("ol", items) if items else element("p", "No sample uses it.")
        cards.append(
            element("article", element("h3", f"Component {k}"), content, class_="card examples")
        )
    return fragment(
        element(
            "p",
            f"Samples of the {whose} in which a component has the largest share of all that is put "
            "into the sample: the purest examples of it.",
        ),
        _cards(cards),
    )
