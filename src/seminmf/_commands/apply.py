"""`seminmf transform`, `cluster` and `impute`: what a model says of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._views.matching import match
from . import formats
from .models import component_names, load_model, read_for
from .options import TableOptions
from .output import print_json, say, spoken_warnings
from .tables import Table, is_label


def transform(model: str, data: str, out: str, options: TableOptions, as_json: bool) -> None:
    """Write the activations of a table's samples."""
    formats.check_tables([out], [model, data], as_json)
    fitted = load_model(model)
    with spoken_warnings() as warnings:
        table = read_for(fitted, data, options)
        activations = np.asarray(fitted.transform(table.X))
    columns = dict(zip(component_names(fitted), activations.T, strict=True))
    formats.write(out, _output(out, table, columns))
    _tell(as_json, {"n_samples": len(activations), "out": out, "warnings": warnings})


def cluster(model: str, data: str, out: str, options: TableOptions, as_json: bool) -> None:
    """Write the cluster of each sample, and compare clusters with labels if there are any."""
    formats.check_tables([out], [model, data], as_json)
    fitted = load_model(model)
    with spoken_warnings() as warnings:
        table = read_for(fitted, data, options)
        amounts = np.asarray(fitted._amounts(fitted.transform(table.X)))
    clusters = np.argmax(amounts, axis=1)
    amounts = amounts.astype(np.float64)
    totals = amounts.sum(axis=1)
    share = amounts[np.arange(len(clusters)), clusters] / np.where(totals > 0, totals, 1)
    columns = {"cluster": clusters, "share": share}
    found: dict[str, Any] = {"sizes": np.bincount(clusters, minlength=len(fitted.components_))}
    if table.labels is not None:
        found |= _compare(table.labels, clusters)
    formats.write(out, _output(out, table, columns, labels=True))
    _tell(as_json, found | {"out": out, "warnings": warnings})


def impute(
    model: str,
    data: str,
    out: str,
    options: TableOptions,
    as_json: bool,
    lower: str | None,
    upper: str | None,
    level: float,
) -> None:
    """Write the table with its gaps filled, and the ends of intervals in tables of their own."""
    outputs = {"filled": out, "lower": lower, "upper": upper}
    formats.check_tables([*outputs.values()], [model, data], as_json)
    fitted = load_model(model)
    intervals = lower is not None or upper is not None
    if intervals and not hasattr(fitted, "interval"):
        raise ValueError(f"{type(fitted).__name__} has no intervals; fit with --bayes.")
    with spoken_warnings() as warnings:
        table = read_for(fitted, data, options)
        settings: dict[str, Any] = {"return_interval": True, "level": level} if intervals else {}
        found = fitted.impute(table.X, **settings)
    tables = dict(zip(outputs, found if intervals else [found], strict=False))
    for name, path in outputs.items():
        if path is not None:
            values = np.asarray(tables[name])
            values = table.filled(values, as_text=formats.is_text(path))
            if formats.has_numbers_only(path) and isinstance(values, pd.DataFrame):
                values = values[table.features]
            formats.write(path, values)
    _tell(as_json, {"n_filled": int(table.gaps.sum()), "out": out, "warnings": warnings})


def _output(
    out: str, table: Table, columns: dict[str, Any], *, labels: bool = False
) -> pd.DataFrame:
    """The columns with ids and labels, or alone where there is no place for names."""
    if formats.has_numbers_only(out):
        return pd.DataFrame(columns)
    return table.with_ids(columns, labels=labels)


def _compare(labels: Any, clusters: np.ndarray) -> dict[str, Any]:
    """How well clusters agree with labels, for the samples that have one."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    known = np.array([is_label(label) for label in labels])
    if not known.any():
        raise ValueError(f"The column {str(labels.name)!r} has no label.")
    names = labels[known].astype(str).to_numpy()
    return {
        "accuracy": match(names, clusters[known]).accuracy,
        "adjusted_rand_index": float(adjusted_rand_score(names, clusters[known])),
        "normalized_mutual_information": float(
            normalized_mutual_info_score(names, clusters[known])
        ),
    }


def _tell(as_json: bool, found: dict[str, Any]) -> None:
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if name != "warnings" and not (name == "out" and value == formats.STANDARD):
            text = f"{value:.3f}" if isinstance(value, float) else value
            say(f"{name.replace('_', ' ')}: {text}")
