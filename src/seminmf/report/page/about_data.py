"""Sections on the data: residuals, gaps, and clusters against labels."""

from __future__ import annotations

import math

from ..._views.markup import Markup, element, fragment
from ..findings.clusters import Clusters
from ..findings.components import LEVEL
from ..findings.gaps import Gap, Gaps
from ..findings.residuals import Misfit, Residuals
from .charts import histogram
from .heat_map import contingency
from .tables import Column, count_cell, name_cell, number_cell, ratio_cell, sortable
from .wording import count, number, percent, ratio


def residuals_section(residuals: Residuals | None) -> Markup | None:
    """What the model does not explain."""
    if residuals is None:
        return None
    unit = " in units of the features’ scales" if residuals.scaled else ""
    features, samples = "Least explained features", "Samples with the largest RMSE"
    return fragment(
        element(
            "div",
            element("div", _summary(residuals, unit)),
            _histogram(residuals, unit),
            class_="beside",
        ),
        element(
            "div",
            element(
                "div",
                element("h3", features),
                _misfits(features, "Feature", residuals.features, "R²"),
            ),
            element(
                "div",
                element("h3", f"{samples}{unit}"),
                _misfits(samples, "Sample", residuals.samples, "RMSE"),
            ),
            class_="beside",
        ),
    )


def _summary(residuals: Residuals, unit: str) -> Markup:
    """How much is explained, and what residuals should look like."""
    return fragment(
        element(
            "p",
            "The components explain ",
            element("strong", percent(residuals.r_squared)),
            " of the squares of the data (R²). The root mean square error "
            f"(RMSE) of {count(residuals.n_observed, 'observed cell')} is ",
            element("strong", number(residuals.rmse)),
            ".",
        ),
        _q_paragraph(residuals),
        element(
            "p",
            f"A residual is data minus fit{unit}. They should spread evenly around zero; a "
            "histogram that leans to one side says that something is left to explain.",
            class_="note",
        ),
    )


def _q_paragraph(residuals: Residuals) -> Markup | None:
    """Residuals against what the model says of noise."""
    if math.isnan(residuals.q_ratio):
        return None
    return element(
        "p",
        "Q, the sum of squares of the residuals in units of the noise and dispersion of the "
        "model, is ",
        element("strong", ratio(residuals.q_ratio)),
        " of what is expected. Features and samples that are far above 1 are not explained by the "
        "components and the noise.",
    )


def _histogram(residuals: Residuals, unit: str) -> Markup:
    chart = residuals.histogram
    if chart is None:
        return element("p", "All residuals are 0.", class_="note")
    caption = f"Cells by residual{unit}"
    if chart.n_outside:
        caption += f"; {count(chart.n_outside, 'cell')} further out"
    drawing = histogram(caption, chart.edges, chart.counts, "residual")
    return element("figure", drawing, element("figcaption", caption))


def _misfits(caption: str, kind: str, misfits: list[Misfit], by: str) -> Markup:
    columns = (
        Column(kind, numeric=False),
        Column("R²", order="ascending" if by == "R²" else "none"),
        Column("RMSE", order="descending" if by == "RMSE" else "none"),
        Column("Q / expected"),
        Column("Observed"),
    )
    rows = [
        (
            name_cell(misfit.name),
            ratio_cell(misfit.r_squared),
            number_cell(misfit.rmse),
            number_cell(misfit.q_ratio),
            count_cell(misfit.n_observed),
        )
        for misfit in misfits
    ]
    return sortable(caption, columns, rows)


def gaps_section(gaps: Gaps | None) -> Markup | None:
    """What the model puts into the gaps."""
    if gaps is None:
        return None
    if not gaps.count:
        return element("p", "The data have no gaps.")
    with_intervals = bool(gaps.rows) and gaps.rows[0].interval is not None
    which = "most uncertain" if with_intervals else "first"
    of = f" of the first {count(gaps.n_considered)}" if gaps.n_considered < gaps.count else ""
    share = percent(gaps.count / gaps.n_cells)
    return fragment(
        element(
            "p",
            f"{count(gaps.count)} of {count(gaps.n_cells, 'cell')} ({share}) are gaps. ",
            element("code", "impute"),
            f" fills them all; here are the {which}{of}.",
        ),
        _gaps_table(gaps.rows, with_intervals),
    )


def _gaps_table(gaps: list[Gap], with_intervals: bool) -> Markup:
    columns = [
        Column("Sample", numeric=False),
        Column("Feature", numeric=False),
        Column("Predicted"),
    ]
    if with_intervals:
        columns += [Column(f"{LEVEL:.0%} from"), Column("to")]
    rows = [
        (
            name_cell(gap.sample),
            name_cell(gap.feature),
            number_cell(gap.value),
            *(number_cell(end) for end in gap.interval or ()),
        )
        for gap in gaps
    ]
    return sortable("Gaps and what is predicted for them", columns, rows)


def clusters_section(clusters: Clusters | None) -> Markup | None:
    """Clusters against labels."""
    if clusters is None:
        return None
    without = f" {count(clusters.n_without, 'sample')} have no label." if clusters.n_without else ""
    fewer = ""
    if clusters.n_labels > len(clusters.labels):
        fewer = f" The table has {len(clusters.labels)} of {count(clusters.n_labels)} labels."
    return fragment(
        element(
            "p",
            "A sample belongs to the component with its largest amount. If each label has one "
            "component, ",
            element("strong", percent(clusters.accuracy)),
            f" of {count(clusters.n_samples, 'sample')} are in that of their label. The adjusted "
            "Rand index is ",
            element("strong", ratio(clusters.adjusted_rand)),
            f"; 1 is full agreement, 0 is chance.{without}{fewer}",
        ),
        contingency("Samples by label and component, the best match on the diagonal", clusters),
    )
