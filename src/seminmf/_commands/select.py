"""`seminmf select`: how many components?"""

from __future__ import annotations

from dataclasses import dataclass

from .._views.pictures import png
from ..bayesian import BayesianSkellamSNMF
from ..selection import select_n_components
from . import formats
from .models import check_scale
from .options import ModelOptions, TableOptions
from .output import folded, print_json, show_progress, spoken_warnings, width
from .tables import read_table


@dataclass(frozen=True)
class Candidates:
    """Which numbers of components are compared, and how."""

    least: int
    most: int
    criterion: str
    out: str | None
    plot: str | None
    scale: bool


def select(
    data: str, wanted: Candidates, table: TableOptions, model: ModelOptions, as_json: bool
) -> None:
    """Compare numbers of components, and say which is best."""
    if wanted.least > wanted.most:
        raise ValueError(f"--min is {wanted.least}, above --max, which is {wanted.most}.")
    formats.check_tables([wanted.out], [data], as_json)
    formats.check_places([wanted.out, wanted.plot], [data])
    given = model.given()
    jobs = {"n_jobs": given.pop("n_jobs", None), "random_state": given.pop("random_state", None)}
    estimator = BayesianSkellamSNMF(scale_features=wanted.scale, **given)
    with spoken_warnings() as warnings:
        X = read_table(data, table).X
        check_scale(X, estimator)
        result = select_n_components(
            X,
            range(wanted.least, wanted.most + 1),
            estimator=estimator,
            criterion=wanted.criterion,
            verbose=int(show_progress()),
            **jobs,
        )
    if wanted.out is not None:
        formats.write(wanted.out, result.table)
    if wanted.plot is not None:
        formats.write_bytes(wanted.plot, png(result.plot().figure))
    if as_json:
        rows = result.table.to_dict(orient="list")
        said = {"best": result.best, "clear": result.clear, "verdict": result.verdict}
        print_json(said | {"table": rows, "warnings": warnings})
    elif wanted.out != formats.STANDARD:
        first, *rows = repr(result).splitlines()
        columns = width()
        if columns is not None and max(map(len, rows)) > columns:
            rows = [
                result.table.to_string(
                    index=False, float_format="{:.6g}".format, line_width=columns
                )
            ]
        print(folded(first), *rows, sep="\n")
