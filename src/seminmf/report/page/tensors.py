"""The page of a tensor model."""

from __future__ import annotations

import math

from ..._views.markup import Child, Markup, element, fragment
from ..findings.tensors import Drops, FactorView, NoiseView, TensorCells, TensorFindings, TensorFit
from .about_fit import concerns_section, convergence_section, facts_list, settings_list
from .bars import share_bar, signed_bars
from .charts import line_chart
from .heat_map import legend, signed_heat_map
from .tables import Cell, Column, count_cell, name_cell, number_cell, ratio_cell, sortable
from .wording import count, number, percent, ratio


def tensor_sections(findings: TensorFindings) -> dict[str, tuple[str, Markup]]:
    """Titles and contents by their place on the page."""
    found = {
        "look": ("Worth a look", concerns_section(findings.concerns)),
        "fit": ("What was fitted", _fit(findings.fit)),
        "convergence": ("How it converged", convergence_section(findings.convergence)),
        "explained": ("What is explained", _explained(findings.drops)),
        "factors": ("Factors", _factors(findings.factors)),
        "noise": ("Noise", _noise(findings.noise)),
        "residuals": ("Residuals", _residuals(findings.cells)),
        "gaps": ("Gaps", _gaps(findings.cells)),
    }
    return {place: (title, content) for place, (title, content) in found.items() if content}


def tensor_figures(findings: TensorFindings) -> dict[str, str | None]:
    """The few numbers that one looks for first."""
    cells = findings.cells
    n_gaps, n_cells = sum(one.n_gaps for one in cells), sum(one.n_cells for one in cells)
    return {
        "factors": count(len(findings.factors)),
        "iterations": count(findings.convergence.n_iter),
        "R²": ratio(findings.fit.r2),
        "gaps": percent(n_gaps / n_cells) if cells else None,
    }


def _fit(fit: TensorFit) -> Markup:
    facts: dict[str, Child] = {
        "Estimator": fit.estimator,
        "Model": [
            element("code", text if len(fit.models) == 1 else f"{name}: {text}")
            for name, text in fit.models.items()
        ],
        "Letters": [element("span", text) for text in fit.letters],
        "Likelihood": fit.likelihood,
        "Explained (R²)": None if math.isnan(fit.r2) else ratio(fit.r2),
        "Dispersion": ", ".join(
            number(value) if len(fit.dispersion) == 1 else f"{name}: {number(value)}"
            for name, value in fit.dispersion.items()
        ),
        "Seed": fit.seed,
        "Other settings": settings_list(fit.settings),
        "Library": f"seminmf {fit.version}",
    }
    return facts_list(facts)


def _explained(drops: list[Drops]) -> Markup | None:
    """What is lost without each value of a latent letter."""
    if not drops:
        return None
    return fragment(
        element(
            "p",
            "“R² lost” is what R² of the fit falls by when a value of a latent letter is taken out "
            "of all factors and the others stay. The other columns say where a factor is largest "
            "for it.",
        ),
        [_drops_table(one) for one in drops],
    )


def _drops_table(drops: Drops) -> Markup:
    largest = max((abs(row.r2_drop) for row in drops.rows), default=0.0) or 1.0
    columns = (
        Column(drops.letter, numeric=False),
        Column("R² lost", order="descending"),
        *(Column(f"{name} largest at", numeric=False) for name in drops.factors),
    )
    rows = [
        (
            name_cell(row.value),
            Cell(
                [
                    share_bar(max(row.r2_drop, 0.0) / largest, "neutral", "track"),
                    element("span", ratio(row.r2_drop)),
                ],
                row.r2_drop,
            ),
            *(name_cell(peak) for peak in row.peaks),
        )
        for row in drops.rows
    ]
    return sortable(f"What is lost without each value of {drops.letter}", columns, rows)


def _factors(factors: list[FactorView]) -> Markup:
    return fragment(
        element(
            "p",
            "A row for each latent cell, in colours that are relative to the strongest of the row; "
            "point at a cell, or move with the arrow keys, to see its value. The names are those "
            "of ",
            element("code", "factors_"),
            ".",
        ),
        legend(),
        [_factor(factor) for factor in factors],
    )


def _factor(factor: FactorView) -> Markup:
    heat_map = factor.heat_map
    notes = [factor.about]
    if factor.n_averaged > 1:
        notes.append(f"each column is the mean of {factor.n_averaged} neighbours")
    if factor.n_cells > len(heat_map.components):
        notes.append(f"the first {len(heat_map.components)} of {count(factor.n_cells)} cells")
    label = f"Factor {factor.name}: {factor.title}"
    chart = None
    if factor.places is not None:
        chart = line_chart(
            f"{label}, as lines",
            factor.places,
            heat_map.values,
            [f"{factor.column_title} {name}" for name in heat_map.components],
            factor.title,
        )
    return fragment(
        element("h3", factor.name),
        element("p", f"{factor.title}: " + "; ".join(notes) + ".", class_="note"),
        chart,
        signed_heat_map(label, heat_map, row=factor.column_title),
    )


def _noise(noise: list[NoiseView]) -> Markup | None:
    """Standard deviations of what no factor explains."""
    if not noise:
        return None
    parts = []
    for one in noise:
        whose = f" of {one.tensor}" if one.tensor else ""
        shown = len(one.bars)
        which = f"the {shown} largest of {one.n_levels}" if shown < one.n_levels else "all"
        if one.n_levels == 1:
            text = f"Its standard deviation{whose} is {number(one.bars[0].value)} in all cells."
            parts.append(element("p", text))
            continue
        parts.append(element("h3", f"By {one.letter}{whose}"))
        parts.append(element("p", f"Standard deviations, {which}.", class_="note"))
        parts.append(signed_bars(f"Noise by {one.letter}{whose}", one.bars))
    return fragment(parts)


def _residuals(cells: list[TensorCells]) -> Markup | None:
    """What the model does not explain."""
    if not cells:
        return None
    parts = []
    for one in cells:
        whose = f" of {one.name}" if one.name else ""
        parts.append(
            element(
                "p",
                f"The factors explain {percent(one.r_squared)} of the squares of the observed "
                f"cells{whose} (R²); the root mean square error (RMSE) is {number(one.rmse)}.",
            )
        )
        columns = (
            Column("Axis", numeric=False),
            Column("Value", numeric=False),
            Column("RMSE"),
            Column("R²"),
            Column("Gaps"),
        )
        rows = [
            (
                name_cell(row.letter),
                name_cell(row.value),
                number_cell(row.rmse),
                ratio_cell(row.r_squared),
                count_cell(row.n_gaps),
            )
            for row in one.worst
        ]
        parts.append(element("h3", f"Largest residuals{whose}, by axis"))
        parts.append(sortable(f"Largest residuals{whose}", columns, rows))
    return fragment(parts)


def _gaps(cells: list[TensorCells]) -> Markup | None:
    """How many cells were not observed, and what the model puts there."""
    if not cells:
        return None
    columns = (
        Column("Tensor", numeric=False),
        Column("Shape", numeric=False),
        Column("Gaps"),
        Column("Share"),
    )
    rows = [
        (
            Cell(one.name or "X"),
            Cell(one.shape),
            count_cell(one.n_gaps),
            Cell(percent(one.n_gaps / one.n_cells), one.n_gaps / one.n_cells),
        )
        for one in cells
    ]
    parts = [sortable("Gaps by tensor", columns, rows)]
    for one in cells:
        if one.filled:
            whose = f" of {one.name}" if one.name else ""
            parts.append(element("h3", f"What the first gaps{whose} are filled with"))
            filled = [(name_cell(place), number_cell(value)) for place, value in one.filled]
            titles = (Column("Cell", numeric=False), Column("Filled with"))
            parts.append(sortable(f"First gaps{whose}", titles, filled))
    return fragment(parts)
