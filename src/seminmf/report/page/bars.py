"""Bars around zero, one line each, with a name before and a number after."""

from __future__ import annotations

from collections.abc import Sequence

from ..._views.markup import Markup, element
from ..findings.components import LEVEL, Bar
from .wording import number

# The end of a long name stays, because names that begin alike may differ there.
_LONGEST_WHOLE, _END = 14, 7
# Units of a bar's drawing, which is stretched to the room that there is.
_WIDTH, _HEIGHT = 200.0, 20.0


def signed_bars(label: str, bars: Sequence[Bar]) -> Markup:
    """A bar for each feature, from the most positive to the most negative."""
    ordered = sorted(bars, key=lambda bar: -bar.value / bar.unit)
    ends = [
        value / bar.unit for bar in ordered for value in (0.0, bar.value, *(bar.interval or ()))
    ]
    low, high = min(ends), max(ends)
    width = high - low or 1.0
    rows = [_row(bar, low - 0.02 * width, 1.04 * width) for bar in ordered]
    return element(
        "table",
        element("caption", label),
        element("colgroup", element("col", class_="name"), element("col"), element("col")),
        element("tbody", rows),
        class_="bars tips",
        tabindex=0,
    )


def _row(bar: Bar, low: float, width: float) -> Markup:
    def place(value: float) -> float:
        return _WIDTH * (value / bar.unit - low) / width

    start, end = sorted((place(0.0), place(bar.value)))
    sign = "positive" if bar.value >= 0 else "negative"
    middle = _HEIGHT / 2
    shapes = [
        element("rect", class_=sign, x=start, y=4, width=end - start, height=_HEIGHT - 8),
        element("line", class_="zero", x1=place(0.0), x2=place(0.0), y1=0, y2=_HEIGHT),
    ]
    if bar.interval:
        left, right = (place(value) for value in bar.interval)
        lines = ((left, right, middle, middle), *((x, x, 7, _HEIGHT - 7) for x in (left, right)))
        shapes += [
            element("line", class_="whisker", x1=x1, x2=x2, y1=y1, y2=y2)
            for x1, x2, y1, y2 in lines
        ]
    drawing = element(
        "svg",
        shapes,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    return element(
        "tr",
        element("th", _clipped(bar.feature), scope="row"),
        element("td", drawing),
        element("td", number(bar.value), class_="numeric"),
        data_tip=_tip(bar),
    )


def _clipped(name: str) -> Markup:
    """A name whose middle gives way where there is no room."""
    split = len(name) if len(name) <= _LONGEST_WHOLE else len(name) - _END
    parts = [element("span", part) for part in (name[:split], name[split:]) if part]
    return element("span", parts, class_="clipped", dir="auto")


def _tip(bar: Bar) -> str:
    tip = f"{bar.feature}: {number(bar.value)}"
    if bar.interval:
        low, high = bar.interval
        tip += f", {LEVEL:.0%} interval {number(low)} to {number(high)}"
    return tip


def share_bar(share: float, inside: str, outside: str) -> Markup:
    """A small bar in two colours, to stand beside a number."""
    return element(
        "svg",
        element("rect", class_=outside, width=100, height=8),
        element("rect", class_=inside, width=100 * share, height=8),
        class_="share",
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
