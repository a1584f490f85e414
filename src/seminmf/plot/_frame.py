"""Axes and colour bars that all pictures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.image import AxesImage

# Red above 0, blue below, white at 0: told apart with any of the colour blindnesses, and equally
# dark on both sides.
SIGNED = "RdBu_r"
# White at 0, the darker the larger.
AMOUNTS = "Blues"
_BAR_WIDTH, _BAR_DISTANCE = 0.15, 0.12
# Inches: smaller figures have no room for labels, and larger ones none on a screen.
_FIGURE_SIZES = (2.6, 18.0)


def check_axes(ax: Any) -> None:
    """Refuse what cannot be drawn on."""
    from matplotlib.axes import Axes

    if ax is not None and not isinstance(ax, Axes):
        raise ValueError(
            f"ax must be a matplotlib Axes or None; found an object of type {type(ax).__name__}."
        )


def axes_for(ax: Axes | None, width: float = 6.4, height: float = 4.4) -> Axes:
    """The axes given, or those of a new figure of about this size in inches."""
    if ax is None:
        from matplotlib.figure import Figure

        size = np.clip((width, height), *_FIGURE_SIZES)
        return Figure(figsize=tuple(size), layout="constrained").subplots()
    return ax


def limit_of(values: NDArray) -> float:
    """The largest |value|, or 1 if there is nothing but zeros: an axis needs some length."""
    largest = float(np.abs(values).max())
    return largest if largest > 0 else 1.0


def round_below(value: float) -> float:
    """The largest of 1, 2 or 5 times a power of 10 that is not above a value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * max(m for m in (1, 2, 5) if m * power <= value or m == 1))


def inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes; before a layout, about what they will be."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def heat_map(ax: Axes, values: NDArray, **image_options: Any) -> AxesImage:
    """An array as an image that fills the axes, with sharp borders between its cells."""
    return ax.imshow(values, aspect="auto", interpolation="nearest", **image_options)


def colour_bar(ax: Axes, drawn: ScalarMappable, label: str, extend: str = "neither") -> Colorbar:
    """What the colours mean, beside the axes: a bar of the same width, however high it is."""
    width, height = inches(ax)
    return ax.figure.colorbar(
        drawn,
        ax=ax,
        label=label,
        extend=extend,
        pad=_BAR_DISTANCE / width,
        aspect=height / _BAR_WIDTH,
    )


def averaged(values: NDArray, most: int) -> NDArray:
    """Means of neighbouring rows, so that at most so many are left."""
    if len(values) <= most:
        return values
    edges = np.linspace(0, len(values), most + 1).astype(int)
    return np.add.reduceat(values, edges[:-1]) / np.diff(edges)[:, None]
