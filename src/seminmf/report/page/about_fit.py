"""Sections on the fit: what to be careful about, what was fitted, how it converged."""

from __future__ import annotations

import math

from ..._views.concerns import Concern
from ..._views.markup import Child, Markup, element
from ..findings.convergence import Convergence
from ..findings.fit import Fit
from .charts import distance_chart
from .wording import count, number, ratio, shortened

_LONGEST_SETTING = 40


def concerns_section(concerns: list[Concern]) -> Markup:
    """What to be careful about."""
    if not concerns:
        return element("p", "Nothing. No check of this report found anything amiss.", class_="good")
    items = [
        element("li", element("h3", concern.title), element("p", concern.text))
        for concern in concerns
    ]
    return element("ul", items, class_="concerns")


def fit_section(fit: Fit) -> Markup:
    """The model, its settings and its data."""
    size = f"{count(fit.n_samples, 'sample')} × {count(fit.n_features, 'feature')}"
    facts: dict[str, Child] = {
        "Estimator": fit.estimator,
        "Components": count(fit.n_components),
        "Fitted to": size,
        "Likelihood": fit.likelihood,
        "Explained (R²)": None if math.isnan(fit.r2) else ratio(fit.r2),
        "Noise of the features": _noise(fit),
        "Dispersion": None if fit.dispersion is None else number(fit.dispersion),
        "Solver": fit.solver,
        "Seed": fit.seed,
        "Data of this report": _given(fit),
        "Scale": "each feature was divided by its own" if fit.scaled else None,
        "Other settings": settings_list(fit.settings),
        "Library": f"seminmf {fit.version}",
    }
    return facts_list(facts)


def facts_list(facts: dict[str, Child]) -> Markup:
    """Names and values, but for those that are None."""
    rows = [
        element("div", element("dt", name), element("dd", value))
        for name, value in facts.items()
        if value is not None
    ]
    return element("dl", rows, class_="facts")


def _noise(fit: Fit) -> str | None:
    if fit.noise is None:
        return None
    least, most = map(number, fit.noise)
    return least if least == most else f"{least} to {most}"


def _given(fit: Fit) -> str:
    if fit.n_given is None:
        return "none, so residuals and gaps are left out; give them as X to see these"
    return count(fit.n_given, "sample")


def settings_list(settings: dict[str, str]) -> Child:
    if not settings:
        return "the defaults"
    return [
        element("code", f"{name} = {shortened(value, _LONGEST_SETTING)}")
        for name, value in settings.items()
    ]


def convergence_section(convergence: Convergence) -> Markup:
    """Why and how the fit ended."""
    text = element("p", convergence.sentence)
    if not len(convergence.iterations):
        return text
    label = f"Distance of the {convergence.objective} to its last value"
    chart = distance_chart(label, convergence.iterations, convergence.distances, convergence.n_iter)
    caption = (
        f"How far the {convergence.objective} was from its last value. The line always drops at "
        "the end; long flat stretches say that progress was slow."
    )
    return element(
        "div", text, element("figure", chart, element("figcaption", caption)), class_="beside"
    )
