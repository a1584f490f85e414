"""What a notebook shows of a fitted estimator, below scikit-learn's diagram."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._views.ending import ending_of, is_drawn
from .._views.markup import Markup, element
from .._views.shares import shares

# Components that are drawn; beyond these a picture says more.
_MOST = 12


def fitted_summary(model: Any) -> Markup:
    """A small table about a fit, and a bar for each component's share of all amounts."""
    n_samples, n_features = len(model.activations_), model.n_features_in_
    rows = {
        "data": f"{n_samples} samples × {n_features} features",
        "end": ending_of(model),
    }
    if is_drawn(model):
        rows["log-likelihood"] = f"{model.lower_bound_:.6g}, mean of the draws"
    elif hasattr(model, "lower_bound_"):
        rows["lower bound"] = f"{model.lower_bound_:.6g}"
    else:
        rows["objective"] = f"{model.objective_:.6g}"
    if not math.isnan(model.r2_):
        rows["R²"] = f"{model.r2_:.3f}"
    cells = [
        element("tr", element("th", name, style="text-align:left"), element("td", text))
        for name, text in rows.items()
    ]
    return element(
        "div",
        element("table", cells),
        element("div", "Share of each component in all amounts, and what R² falls by without it"),
        _bars(shares(model), model.r2_drop_),
        style="font-family:sans-serif;font-size:0.85em;margin-top:0.5em",
    )


def _bars(sizes: NDArray, drops: NDArray) -> Markup:
    order = np.argsort(sizes)[::-1]
    bars = [_bar(int(k), float(sizes[k]), float(drops[k])) for k in order[:_MOST]]
    rest = len(order) - len(bars)
    more = element("div", f"and {rest} more, {sizes[order[_MOST:]].sum():.1%}") if rest else None
    return element("div", bars, more)


def _bar(k: int, share: float, drop: float) -> Markup:
    width = f"display:inline-block;height:0.7em;background:#0072b2;width:{100 * share:.1f}px"
    lost = "" if math.isnan(drop) else f", R² {-drop:+.3f}"
    return element("div", element("span", style=width), f" {share:.1%}  component {k}{lost}")
