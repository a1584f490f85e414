"""Options that several commands share, as groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

_BY_NAME = inspect.Parameter.KEYWORD_ONLY
# Panels of the help page.
_TABLE = "Table"
_MODEL = "Model"


class Format(StrEnum):
    """Formats of tables."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    npy = "npy"
    npz = "npz"


class Zeros(StrEnum):
    """What the cells are that a sparse matrix does not store."""

    observed = "observed"
    missing = "missing"


class Likelihood(StrEnum):
    """What the data are."""

    real = "real"
    integer = "integer"


class Acceleration(StrEnum):
    """How EM is extrapolated."""

    squarem = "squarem"
    parabolic = "parabolic"
    none = "none"


class Posterior(StrEnum):
    """Which posterior a fit with --bayes has."""

    auto = "auto"
    correlated = "correlated"
    mean_field = "mean-field"


def _option(*names: str, panel: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


@dataclass(frozen=True)
class TableOptions:
    """How a table is read."""

    # Lists, to refuse a second column rather than to forget the first.
    id: Annotated[
        list[str],
        _option("--id", panel=_TABLE, metavar="NAME", help="Column that names the rows."),
    ] = ()  # type: ignore[assignment]
    label: Annotated[
        list[str],
        _option("--label", panel=_TABLE, metavar="NAME", help="Column to compare clusters with."),
    ] = ()  # type: ignore[assignment]
    drop: Annotated[
        list[str],
        _option("--drop", panel=_TABLE, metavar="NAME", help="Column to leave out; repeatable."),
    ] = ()  # type: ignore[assignment]
    missing: Annotated[
        list[str],
        _option(
            "--missing",
            panel=_TABLE,
            metavar="TEXT",
            help="What stands for a gap, besides empty cells, NA and NaN; repeatable.",
        ),
    ] = ()  # type: ignore[assignment]
    format: Annotated[
        Format | None,
        _option("--format", panel=_TABLE, help="Format of the table (default: by its suffix)."),
    ] = None
    header: Annotated[
        bool | None,
        _option(
            "--header/--no-header",
            panel=_TABLE,
            help="Whether the first line has the names of the columns "
            "(default: yes, unless it is all numbers).",
        ),
    ] = None
    sep: Annotated[
        str | None,
        _option(
            "--sep",
            panel=_TABLE,
            metavar="CHAR",
            help="What is between cells of text, or tab (default: found).",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        _option(
            "--decimal",
            panel=_TABLE,
            metavar="CHAR",
            help="Point or comma in numbers of text (default: found).",
        ),
    ] = None
    zeros: Annotated[
        Zeros | None,
        _option("--zeros", panel=_TABLE, help="What a sparse matrix does not store."),
    ] = None


@dataclass(frozen=True)
class ModelOptions:
    """Parameters of an estimator; None is the estimator's own default."""

    likelihood: Annotated[
        Likelihood | None,
        _option(
            "--likelihood",
            panel=_MODEL,
            help='"real" for any numbers, "integer" for counts and their differences.',
        ),
    ] = None
    activation_shape_prior: Annotated[
        float | None,
        _option(
            "--activation-shape",
            panel=_MODEL,
            metavar="A",
            help="Gamma prior: shape (1, or auto with --bayes).",
        ),
    ] = None
    activation_rate_prior: Annotated[
        float | None,
        _option("--activation-rate", panel=_MODEL, metavar="B", help="Gamma prior: rate (auto)."),
    ] = None
    atom_shape_prior: Annotated[
        float | None,
        _option("--atom-shape", panel=_MODEL, metavar="A", help="Dirichlet prior: shape (1)."),
    ] = None
    posterior: Annotated[
        Posterior | None,
        _option("--posterior", panel=_MODEL, help="With --bayes: draws, or a mean field (auto)."),
    ] = None
    acceleration: Annotated[
        Acceleration | None,
        _option("--acceleration", panel=_MODEL, help="How EM is made faster (squarem)."),
    ] = None
    init: Annotated[
        str | None,
        _option(
            "--init", panel=_MODEL, metavar="NAME", help="Start: random, kmeans, svd, prior or map."
        ),
    ] = None
    max_iter: Annotated[
        int | None, _option("--max-iter", panel=_MODEL, metavar="N", help="Most iterations (3000).")
    ] = None
    tol: Annotated[
        float | None,
        _option("--tol", panel=_MODEL, metavar="X", help="Gain at which a fit ends (1e-4)."),
    ] = None
    any_numbers: Annotated[
        bool,
        _option(
            "--any-numbers",
            panel=_MODEL,
            help='Let the likelihood "integer" have numbers that are none.',
        ),
    ] = False
    seed: Annotated[
        int | None,
        _option(
            "--seed",
            panel=_MODEL,
            min=0,
            max=2**32 - 1,
            metavar="N",
            help="Seed of all random choices.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        _option("--jobs", panel=_MODEL, min=1, metavar="N", help="Threads (default: all cores)."),
    ] = None

    def given(self) -> dict[str, Any]:
        """The estimator's parameters that were given."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["check_integer"] = False if values.pop("any_numbers") else None
        values["random_state"] = values.pop("seed")
        values["n_jobs"] = values.pop("jobs")
        values = {name: value for name, value in values.items() if value is not None}
        if values.get("acceleration") == Acceleration.none:
            values["acceleration"] = None
        return {k: str(v) if isinstance(v, StrEnum) else v for k, v in values.items()}


class Noise(StrEnum):
    """Which levels of noise there are."""

    feature = "feature"
    same = "same"
    none = "none"


def _dispersion(text: str) -> float | str:
    """A number, or "auto"."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor auto.") from None


@dataclass(frozen=True)
class NoiseOptions:
    """What besides components is in the data."""

    dispersion: Annotated[
        Any,
        _option(
            "--dispersion",
            panel=_MODEL,
            metavar="X",
            parser=_dispersion,
            help="Dispersion, in the unit of the data; 0 is the paper's model (auto).",
        ),
    ] = None
    noise: Annotated[
        Noise | None,
        _option("--noise", panel=_MODEL, help="Noise by feature, the same for all, or none."),
    ] = None
    intercept: Annotated[
        bool,
        _option("--intercept", panel=_MODEL, help="Add a number to each feature."),
    ] = False
    positive: Annotated[
        bool,
        _option("--positive", panel=_MODEL, help="Components of at least 0, under noise."),
    ] = False

    def given(self) -> dict[str, Any]:
        """The estimator's parameters that were given."""
        values: dict[str, Any] = {}
        if self.dispersion is not None:
            values["dispersion"] = self.dispersion
        if self.noise is not None:
            values["noise"] = None if self.noise == Noise.none else str(self.noise)
        if self.intercept:
            values["fit_intercept"] = True
        if self.positive:
            values["positive_components"] = True
        return values


def option_of(parameter: str) -> str:
    """The option that gives a parameter of an estimator."""
    names = {
        "random_state": "seed",
        "n_jobs": "jobs",
        "fit_intercept": "intercept",
        "positive_components": "positive",
        "scale_features": "scale",
    }
    name = names.get(parameter, parameter.removesuffix("_prior"))
    return "--any-numbers" if parameter == "check_integer" else f"--{name.replace('_', '-')}"


Json = Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let each parameter that is a group of options stand for the options of the group."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            parameter = parameter.replace(annotation=hints[name], kind=_BY_NAME)
            parameters.append(parameter)
            continue
        types = get_type_hints(groups[name], include_extras=True)
        parameters += [
            inspect.Parameter(f.name, _BY_NAME, default=f.default, annotation=types[f.name])
            for f in fields(groups[name])
        ]

    @wraps(command)
    def collected(**values: Any) -> None:
        for name, group in groups.items():
            options = {field.name: values.pop(field.name) for field in fields(group)}
            values[name] = group(**options)
        command(**values)

    collected.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    collected.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    del collected.__wrapped__  # else its signature would be taken
    return collected
