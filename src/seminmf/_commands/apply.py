"""`seminmf transform`, `cluster` and `impute`: what a model says of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._matching import match
from . import formats
from .models import component_names, load_model, read_for, scaled, unscaled
from .options import TableOptions
from .output import print_json, say, spoken_warnings


def transform(model: str, data: str, out: str, options: TableOptions, as_json: bool) -> None:
    """Write the activations of a table's samples."""
    _check_output(out, as_json)
    fitted = load_model(model)
    table = read_for(fitted, data, options)
    with spoken_warnings() as warnings:
        activations = np.asarray(fitted.transform(scaled(fitted, table.X)))
    columns = dict(zip(component_names(fitted), activations.T, strict=True))
    formats.write(out, table.with_ids(columns))
    _tell(as_json, {"n_samples": len(activations), "out": out, "warnings": warnings})


def cluster(model: str, data: str, out: str, options: TableOptions, as_json: bool) -> None:
    """Write the cluster of each sample, and compare clusters with labels if there are any."""
    _check_output(out, as_json)
    fitted = load_model(model)
    table = read_for(fitted, data, options)
    with spoken_warnings() as warnings:
        X = scaled(fitted, table.X)
        clusters = np.asarray(fitted.predict(X))
        activations = np.asarray(fitted.transform(X), dtype=np.float64)
    totals = activations.sum(axis=1)
    share = activations[np.arange(len(clusters)), clusters] / np.where(totals > 0, totals, 1)
    columns = {"cluster": clusters}
    if formats.format_of(out, None) not in ("npy", "npz"):
        columns["share"] = share
    found = _sizes(clusters, len(fitted.components_))
    if table.labels is not None:
        found |= _compare(table.labels, clusters)
        columns[str(table.labels.name)] = table.labels.to_numpy()
    formats.write(out, table.with_ids(columns))
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
    for path in outputs.values():
        if path is not None:
            _check_output(path, as_json)
    fitted = load_model(model)
    intervals = lower is not None or upper is not None
    if intervals and not hasattr(fitted, "interval"):
        raise ValueError(f"{type(fitted).__name__} has no intervals; fit with --bayes.")
    table = read_for(fitted, data, options)
    X = table.X
    gaps = np.isnan(np.asarray(X))
    with spoken_warnings() as warnings:
        settings: dict[str, Any] = {"return_interval": True, "level": level} if intervals else {}
        found = fitted.impute(scaled(fitted, X), **settings)
    tables = dict(zip(outputs, found if intervals else [found], strict=False))
    for name, path in outputs.items():
        if path is not None:
            values = np.where(gaps, unscaled(fitted, np.asarray(tables[name])), X)
            formats.write(path, table.with_features(values))
    _tell(as_json, {"n_filled": int(gaps.sum()), "out": out, "warnings": warnings})


def _check_output(out: str, as_json: bool) -> None:
    if as_json and out == formats.STANDARD:
        raise ValueError("--json and the table cannot both go to standard output; give -o a file.")
    formats.check_writable(out)


def _sizes(clusters: np.ndarray, n_components: int) -> dict[str, Any]:
    sizes = np.bincount(clusters, minlength=n_components)
    return {"sizes": sizes.tolist()}


def _compare(labels: Any, clusters: np.ndarray) -> dict[str, Any]:
    """How well clusters agree with labels, for the samples that have one."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    known = labels.notna().to_numpy()
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
        if name != "warnings" and value != formats.STANDARD:
            text = f"{value:.3f}" if isinstance(value, float) else value
            say(f"{name.replace('_', ' ')}: {text}")
