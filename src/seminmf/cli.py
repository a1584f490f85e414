"""The command `seminmf`.

Commands import what they need when they run, so that `seminmf --help` is quick. A new command is a
function below with `@_command()` that hands over to a module of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer

from ._commands.options import Json, ModelOptions, NoiseOptions, TableOptions, grouped

P = ParamSpec("P")

app = typer.Typer(
    name="seminmf",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _command(**settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command, with groups of options and plain errors."""

    def register(command: Callable[..., None]) -> Callable[..., None]:
        return app.command(**settings)(grouped(_plain_errors(command)))

    return register


def _plain_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Say in one line what is wrong, without a traceback.

    Bad input exits with 2, trouble with disk or memory with 1, Ctrl-C with 130.
    """

    @wraps(command)
    def guarded(*args: P.args, **options: P.kwargs) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt:
            typer.echo("\nStopped.", err=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Who was reading has seen enough. Nothing more is to be flushed at the exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (ValueError, OSError, MemoryError) as error:
            typer.echo(f"seminmf: {_in_words(error)}", err=True)
            raise typer.Exit(2 if isinstance(error, ValueError) else 1) from error

    return guarded


def _in_words(error: Exception) -> str:
    from ._commands.output import in_options, printable

    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return printable(in_options(text)) or "There is not enough memory."


def _show_version(wanted: bool) -> None:
    if wanted:
        from . import __version__

        typer.echo(f"seminmf {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Semi-nonnegative matrix factorization: signed data, with gaps, as a sum of few parts.

    Look at an example, or take a table of your own:

        $ seminmf demo

        $ seminmf select data.csv --max 8

        $ seminmf fit data.csv -k 3 -o m.safetensors

        $ seminmf report m.safetensors data.csv -o report.html
    """


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="Table: CSV, TSV, Parquet, NPY or NPZ, also .gz; - is standard input."
    ),
]
Model = Annotated[str, typer.Argument(help="File that `seminmf fit` wrote.")]
Components = Annotated[
    int | None, typer.Option("-k", "--components", min=1, metavar="K", help="Number of components.")
]
Out = Annotated[str, typer.Option("-o", "--out", metavar="FILE", help="Table to write.")]


class Solver(StrEnum):
    """How a point estimate is found."""

    newton = "newton"
    em = "em"
    hals = "hals"
    multiplicative = "multiplicative"


@_command()
def fit(
    data: Data,
    out: Annotated[str, typer.Option("-o", "--out", metavar="FILE", help="Model to write.")],
    table: TableOptions,
    model: ModelOptions,
    noise: NoiseOptions,
    n_components: Components = None,
    bayes: Annotated[
        bool,
        typer.Option("--bayes", help="Find a posterior, with intervals, by variational Bayes."),
    ] = False,
    euclidean: Annotated[
        bool, typer.Option("--euclidean", help="The classic, by least squares.")
    ] = False,
    scale: Annotated[
        bool,
        typer.Option(
            "--scale", help="Scale the features to one size; all outputs are in their own units."
        ),
    ] = False,
    prior: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="Take the prior that `seminmf learn` has learned."),
    ] = None,
    n_init: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Starts, of which the best is kept.")
    ] = None,
    solver: Annotated[
        Solver | None, typer.Option(help="newton or em; with --euclidean hals or multiplicative.")
    ] = None,
    cell_noise: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Known standard deviations of the cells, a table like the data."
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Note in this file how far the fit is, and go on from it after a stop.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="From one note to the next.")
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Fit a model to a table: X ≈ activations · components.

    Rows are samples, columns are features, empty cells are gaps.

        $ seminmf fit data.csv -k 5 -o m.safetensors

        $ seminmf fit goals.csv --id team -k 3 --likelihood integer -o m.safetensors

        $ seminmf fit air.csv -k 6 --positive --cell-noise errors.csv -o m.safetensors

        $ cat data.tsv | seminmf fit - --format tsv -k 5 -o m.safetensors

    A long run that may be stopped at any time, and goes on with the same command:

        $ seminmf fit big.parquet -k 30 --checkpoint run.ckpt -o m.safetensors
    """
    from ._commands.fit import Request, run

    if bayes + euclidean + (prior is not None) > 1:
        raise ValueError("Only one of --bayes, --euclidean and --prior can be had.")
    name = "BayesianSkellamSNMF" if bayes else "EuclideanSNMF" if euclidean else "SkellamSNMF"
    own = {"n_init": n_init, "solver": solver and solver.value, "scale_features": scale or None}
    own |= noise.given()
    request = Request(
        data,
        out,
        name,
        n_components,
        {option: value for option, value in own.items() if value is not None},
        prior,
        checkpoint,
        checkpoint_every,
        cell_noise,
    )
    run(request, table, model, as_json)


@_command()
def transform(
    model: Model, data: Data, table: TableOptions, out: Out = "-", as_json: Json = False
) -> None:
    """Write how much of each component the samples of a table have.

    seminmf transform m.safetensors new.csv --id name -o activations.csv
    """
    from ._commands import apply

    apply.transform(model, data, out, table, as_json)


@_command()
def cluster(
    model: Model, data: Data, table: TableOptions, out: Out = "-", as_json: Json = False
) -> None:
    """Write the cluster of each sample: the component of which it has most.

        $ seminmf cluster m.safetensors data.csv --id name -o clusters.csv

    With a column of labels it says how well clusters and labels agree:

        $ seminmf cluster m.safetensors data.csv --label species -o clusters.csv
    """
    from ._commands import apply

    apply.cluster(model, data, out, table, as_json)


@_command()
def impute(
    model: Model,
    data: Data,
    table: TableOptions,
    out: Out = "-",
    lower: Annotated[
        str | None, typer.Option(metavar="FILE", help="Table of the lower ends of intervals.")
    ] = None,
    upper: Annotated[
        str | None, typer.Option(metavar="FILE", help="Table of their upper ends.")
    ] = None,
    level: Annotated[float, typer.Option(metavar="P", help="Probability of the intervals.")] = 0.9,
    as_json: Json = False,
) -> None:
    """Write a table with its gaps filled.

        $ seminmf impute m.safetensors data.csv -o filled.csv

    A model that was fitted with --bayes also knows how far off it may be:

        $ seminmf impute m.safetensors data.csv -o filled.csv --lower low.csv
    """
    from ._commands import apply

    apply.impute(model, data, out, table, as_json, lower, upper, level)


class Kind(StrEnum):
    """How data are drawn again."""

    parametric = "parametric"
    rows = "rows"


@_command()
def bootstrap(
    model: Model,
    data: Data,
    table: TableOptions,
    out: Annotated[
        str, typer.Option("-o", "--out", metavar="FILE", help="Table of the components.")
    ] = "-",
    amounts: Annotated[
        str | None, typer.Option(metavar="FILE", help="Table of the amounts of the samples.")
    ] = None,
    draws: Annotated[int, typer.Option(min=2, metavar="N", help="Number of refits.")] = 200,
    kind: Annotated[
        Kind, typer.Option(help="New noise in each cell, or samples with replacement.")
    ] = Kind.parametric,
    level: Annotated[float, typer.Option(metavar="P", help="Probability of the intervals.")] = 0.9,
    cell_noise: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Known standard deviations, as they were for the fit."),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Note refits in this file, and go on after a stop."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of the draws.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Refits at a time (default: all cores).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write how far components and amounts may be off: fits to data like these, drawn again.

        $ seminmf bootstrap m.safetensors data.csv -o components.csv

        $ seminmf bootstrap m.safetensors data.csv --amounts amounts.csv --seed 0

    The table has a row for each entry of each component, with the ends of its interval, and in how
    many refits the component came back.
    """
    from ._commands.bootstrap import Resampling, bootstrap

    wanted = Resampling(draws, kind.value, level, seed, jobs, cell_noise, checkpoint, out, amounts)
    bootstrap(model, data, wanted, table, as_json)


class Criterion(StrEnum):
    """How numbers of components are compared."""

    elbo = "elbo"
    heldout = "heldout"
    relevance = "relevance"


@_command()
def select(
    data: Data,
    table: TableOptions,
    model: ModelOptions,
    scale: Annotated[bool, typer.Option("--scale", help="Scale the features to one size.")] = False,
    least: Annotated[int, typer.Option("--min", min=1, metavar="K", help="Fewest components.")] = 1,
    most: Annotated[int, typer.Option("--max", min=1, metavar="K", help="Most components.")] = 12,
    criterion: Annotated[
        Criterion, typer.Option(help="Evidence, hidden cells, or one large fit.")
    ] = Criterion.elbo,
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="FILE", help="Table of the scores.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Picture of the scores, in PNG.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose the number of components.

    seminmf select data.csv --min 1 --max 12 --seed 0 --plot choice.png
    """
    from ._commands.select import Candidates, select

    wanted = Candidates(least, most, criterion.value, out, plot, scale)
    select(data, wanted, table, model, as_json)


@_command()
def learn(
    state: Annotated[str, typer.Argument(help="File of what has been learned.")],
    data: Annotated[list[str], typer.Argument(help="Tables, one a matrix.")],
    table: TableOptions,
    model: ModelOptions,
    n_components: Components = None,
    learning_rate: Annotated[
        str | None,
        typer.Option(metavar="X", help='Weight of a new matrix, "harmonic" or "annealed".'),
    ] = None,
    as_json: Json = False,
) -> None:
    """Learn a prior from many tables of one kind, one after the other.

    The first call begins the state, later ones go on with it:

        $ seminmf learn p.safetensors monday.csv -k 4 --seed 0

        $ seminmf learn p.safetensors tuesday.csv wednesday.csv

        $ seminmf fit thursday.csv --prior p.safetensors -o m.safetensors
    """
    from ._commands.learn import learn

    learn(state, data, n_components, learning_rate, table, model, as_json)


@_command()
def info(
    model: Model,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", metavar="FILE", help="Table of the components to write."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is in a file, and write its components as a table.

    seminmf info m.safetensors

    seminmf info m.safetensors -o components.csv
    """
    from ._commands.info import info

    info(model, out, as_json)


@_command()
def report(
    model: Model,
    table: TableOptions,
    data: Annotated[str | None, typer.Argument(help="Table that the page is about, too.")] = None,
    out: Annotated[
        str, typer.Option("-o", "--out", metavar="FILE", help="Page to write.")
    ] = "report.html",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--bootstrap", min=2, metavar="N", help="Show intervals by so many refits to DATA."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a page that is there.")] = False,
) -> None:
    """Write a page about a model: what it found, how well it fits, what to look at.

        $ seminmf report m.safetensors data.csv -o report.html

        $ seminmf report m.safetensors data.csv --bootstrap 200 -o report.html

    The page needs no network, and may be sent to anybody who has a browser.
    """
    from ._commands.report import report

    report(model, data, out, title, table, draws, force)


@_command()
def demo(
    out: Annotated[
        Path, typer.Option(file_okay=False, metavar="FOLDER", help="Where the results go.")
    ] = Path("seminmf-demo"),
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, metavar="N", help="Seed of all random choices.")
    ] = 0,
) -> None:
    """Hide a fifth of a real data set, predict it, and say how well that went.

    Takes some seconds. Writes a picture, demo.png, and the fitted model, demo.safetensors.
    """
    from .demo import run

    run(out, seed)


class Experiment(StrEnum):
    """What can be reproduced."""

    parameters = "parameters"
    online = "online"
    likelihoods = "likelihoods"
    clustering = "clustering"
    missing = "missing"
    all = "all"


@_command()
def reproduce(
    name: Annotated[Experiment, typer.Argument(help="Which experiment.", show_default=False)],
    runs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Runs, or draws (default: the paper's, or more)."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes (default: all cores).")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=10**5, metavar="N", help="Seed of all random choices.")
    ] = 0,
    out: Annotated[
        Path, typer.Option(file_okay=False, metavar="FOLDER", help="Where the results go.")
    ] = Path("seminmf-results"),
    data_home: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            metavar="FOLDER",
            help="Where data sets are that do not come with the package "
            "(default: the folder that SEMINMF_DATA names).",
        ),
    ] = None,
    matrices: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help='Matrices of a stream, in the experiment "online".  '
            "[default: 1300, or 60 with fewer runs than the paper's]",
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help='Draws of the prior, in the experiment "parameters".'
        ),
    ] = 20,
    published: Annotated[
        bool,
        typer.Option(
            help="Draw priors as in the published runs, with shapes up to 11, and not as in the "
            "paper's text, up to 10."
        ),
    ] = False,
) -> None:
    """Do the experiments of the paper again, and show its figures beside ours.

    parameters   Table 3: errors of sources, when the prior is known
    online       priors that are learned from a stream of matrices
    likelihoods  integer against real likelihood, the components being known
    clustering   Table 5: clusters in four data sets, against their classes
    missing      hidden cells of an image, of ratings and of a football season

    A run that was stopped goes on where it was, with the same command. For a quick look:

        $ seminmf reproduce all --runs 3
    """
    from .experiments import NAMES, run

    options = {"matrices": matrices, "draws": draws, "published": published}
    options = {option: value for option, value in options.items() if value is not None}
    try:
        for chosen in NAMES if name == Experiment.all else [name.value]:
            run(chosen, out / chosen, runs, jobs, seed, data_home, options)
    except KeyboardInterrupt:
        typer.echo("\nThe same command goes on from here.", err=True)
        raise
