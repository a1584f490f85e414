"""Charts with axes, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from ..._views.markup import Markup, element
from .wording import count, number

_WIDTH, _HEIGHT = 360, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 10, 10, 38
_MOST_MARKS = 60
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def distance_chart(label: str, iterations: NDArray, distances: NDArray, n_iter: int) -> Markup:
    """The distance to the end, on a logarithmic scale, over the iterations."""
    logs = np.log10(distances)
    low, high = np.floor(logs.min()), np.ceil(logs.max())
    high = high if high > low else low + 1
    x = _scale(0, max(n_iter, 1), _LEFT, _WIDTH - _RIGHT)
    y = _scale(low, high, _HEIGHT - _BOTTOM, _TOP)
    points = [(x(i), y(log)) for i, log in zip(iterations, logs, strict=True)]
    step = max(1, -(-len(points) // _MOST_MARKS))
    marks = [
        element(
            "circle",
            class_="mark",
            cx=px,
            cy=py,
            r=5,
            data_tip=f"iteration {count(int(i))}: {number(distance)}",
        )
        for (px, py), i, distance in list(zip(points, iterations, distances, strict=True))[::step]
    ]
    decades = np.arange(low, high + 1, max(1, np.ceil((high - low) / 5)))
    return _chart(
        label,
        _vertical_axis([(y(d), f"10{str(int(d)).translate(_SUPERSCRIPTS)}") for d in decades]),
        _horizontal_axis(
            [(x(t), count(round(t))) for t in _ticks(0, max(n_iter, 1), 5, whole=True)]
        ),
        element("polyline", class_="curve", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in points)),
        marks,
        _axis_title("iteration"),
    )


def line_chart(
    label: str, places: NDArray, values: NDArray, names: list[str], title: str
) -> Markup:
    """A line for each row of values, in colours of their own, with their names below."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    high = high if high > low else low + 1
    x = _scale(float(places[0]), float(places[-1]), _LEFT, _WIDTH - _RIGHT)
    y = _scale(low, high, _HEIGHT - _BOTTOM, _TOP)
    lines = [
        element(
            "polyline",
            class_=f"curve line{n}",
            points=" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(places, row, strict=True)),
        )
        for n, row in enumerate(values)
    ]
    chart = _chart(
        label,
        _vertical_axis([(y(t), number(t, 2)) for t in _ticks(low, high, 4)]),
        _horizontal_axis([(x(t), number(t, 2)) for t in _ticks(places[0], places[-1], 5)]),
        element("line", class_="zero", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(0), y2=y(0)),
        lines,
        _axis_title(title),
    )
    keys = [
        element("span", element("i", class_=f"line{n}"), name, class_="key")
        for n, name in enumerate(names)
    ]
    return element("figure", chart, element("figcaption", keys))


def histogram(label: str, edges: NDArray, counts: NDArray, title: str) -> Markup:
    """Bars for the cells between the edges, in the colour of their sign."""
    x = _scale(edges[0], edges[-1], _LEFT, _WIDTH - _RIGHT)
    y = _scale(0, counts.max(), _HEIGHT - _BOTTOM, _TOP)
    bars = []
    for start, end, n in zip(edges[:-1], edges[1:], counts, strict=True):
        middle = (start + end) / 2
        sign = "neutral" if start < 0 < end else "positive" if middle > 0 else "negative"
        bars.append(
            element(
                "rect",
                class_=sign,
                x=x(start) + 0.5,
                y=y(n),
                width=x(end) - x(start) - 1,
                height=y(0) - y(n),
                data_tip=f"{number(start)} to {number(end)}: {count(int(n), 'cell')}",
            )
        )
    return _chart(
        label,
        _vertical_axis([(y(t), count(round(t))) for t in _ticks(0, counts.max(), 4, whole=True)]),
        _horizontal_axis([(x(t), number(t, 2)) for t in _ticks(edges[0], edges[-1], 5)]),
        bars,
        element("line", class_="zero", x1=x(0), x2=x(0), y1=_TOP, y2=_HEIGHT - _BOTTOM),
        _axis_title(title),
    )


def _chart(label: str, *parts: Markup | list[Markup]) -> Markup:
    drawing = element("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", aria_hidden="true")
    return element("div", drawing, class_="chart tips", tabindex=0, role="group", aria_label=label)


def _scale(start: float, end: float, first: float, last: float) -> Callable[[float], float]:
    """From numbers to places."""
    return lambda value: first + (last - first) * float((value - start) / (end - start))


def _ticks(start: float, end: float, most: int, whole: bool = False) -> NDArray:
    """Round numbers from start to end: at most so many, or one more."""
    rough = (end - start) / most
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    step = max(step, 1.0) if whole else step
    return np.arange(np.ceil(start / step), np.floor(end / step) + 1) * step


def _vertical_axis(ticks: Iterable[tuple[float, str]]) -> list[Markup]:
    """Lines across the chart, with a number before each."""
    parts = []
    for y, text in ticks:
        parts.append(element("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y))
        parts.append(element("text", text, x=_LEFT - 6, y=y + 4, class_="end"))
    return parts


def _horizontal_axis(ticks: Iterable[tuple[float, str]]) -> list[Markup]:
    """Numbers below the chart."""
    bottom = _HEIGHT - _BOTTOM
    line = element("line", class_="axis", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=bottom, y2=bottom)
    return [
        line,
        *(element("text", text, x=x, y=bottom + 15, class_="middle") for x, text in ticks),
    ]


def _axis_title(text: str) -> Markup:
    return element("text", text, class_="middle", x=(_LEFT + _WIDTH - _RIGHT) / 2, y=_HEIGHT - 5)
