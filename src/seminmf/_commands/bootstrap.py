"""`seminmf bootstrap`: how the factors of a model vary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._resampling.bootstrap import Bootstrap
from .._resampling.bootstrap import bootstrap as draw_again
from . import formats
from .models import feature_names, load_model, read_for
from .noise import read_cell_noise
from .options import TableOptions
from .output import print_json, say, show_progress, spoken_warnings
from .tables import Table


@dataclass(frozen=True)
class Resampling:
    """How data are drawn again, and where what was found goes.

    Attributes
    ----------
    n_draws, kind, level : int, str, float
    seed, jobs : int or None
    cell_noise : str or None
        Table of known standard deviations.
    checkpoint : str or None
    out : str
        Table of the components.
    amounts : str or None
        Table of the amounts.
    """

    n_draws: int
    kind: str
    level: float
    seed: int | None
    jobs: int | None
    cell_noise: str | None
    checkpoint: str | None
    out: str
    amounts: str | None


def bootstrap(
    model: str, data: str, wanted: Resampling, options: TableOptions, as_json: bool
) -> None:
    """Write intervals of components and amounts, and say how often components came back."""
    formats.check_tables([wanted.out, wanted.amounts], [model, data], as_json)
    formats.check_places([wanted.checkpoint], [model, data])
    fitted = load_model(model)
    with spoken_warnings() as warnings:
        table = read_for(fitted, data, options)
        found = resample(fitted, table, wanted, options)
    formats.write(wanted.out, _components(fitted, found))
    if wanted.amounts is not None:
        columns = _amounts(fitted, found)
        plain = formats.has_numbers_only(wanted.amounts)
        frame = pd.DataFrame(columns) if plain else table.with_ids(columns, labels=False)
        formats.write(wanted.amounts, frame)
    said = {"n_draws": found.n_draws, "kind": found.kind, "level": found.level}
    said |= {"returned": found.n_returned, "cosines": found.cosines, "warnings": warnings}
    if as_json:
        print_json(said)
        return
    for k, (returned, cosine) in enumerate(zip(found.n_returned, found.cosines, strict=True)):
        say(f"component {k}: came back in {returned} of {found.n_draws}, mean cosine {cosine:.3f}")


def resample(fitted: Any, table: Table, wanted: Resampling, options: TableOptions) -> Bootstrap:
    """The bootstrap of a model on the table that it was fitted to."""
    known: dict[str, Any] = {}
    if wanted.cell_noise is not None:
        names = feature_names(fitted)
        known["cell_noise"] = read_cell_noise(wanted.cell_noise, table, options, names)
    return draw_again(
        fitted,
        table.X,
        n_draws=wanted.n_draws,
        kind=wanted.kind,
        level=wanted.level,
        random_state=wanted.seed,
        n_jobs=wanted.jobs,
        verbose=int(show_progress()),
        checkpoint=wanted.checkpoint,
        **known,
    )


def _components(model: Any, found: Bootstrap) -> pd.DataFrame:
    """A row for each entry of each component, in the unit of the table."""
    parts = (model.components_, found.components.lower, found.components.upper)
    values, lower, upper = (np.asarray(part, dtype=np.float64) for part in parts)
    n_components, n_features = values.shape
    names = feature_names(model) or [f"feature_{i}" for i in range(n_features)]
    return pd.DataFrame(
        {
            "component": np.repeat(np.arange(n_components), n_features),
            "feature": names * n_components,
            "value": values.ravel(),
            "lower": lower.ravel(),
            "upper": upper.ravel(),
            "returned": np.repeat(found.n_returned, n_features),
        }
    )


def _amounts(model: Any, found: Bootstrap) -> dict[str, Any]:
    """Three columns for each component."""
    columns = {}
    for k, amounts in enumerate(model.amounts_.T):
        columns[f"component_{k}"] = amounts
        columns[f"component_{k}_lower"] = found.amounts.lower[:, k]
        columns[f"component_{k}_upper"] = found.amounts.upper[:, k]
    return columns
