"""The command `seminmf`.

Commands import what they need when they run, so that `seminmf --help` is quick. A new command is a
function below with `@app.command()` and `@_plain_errors` that hands over to a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

P = ParamSpec("P")

app = typer.Typer(
    name="seminmf",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _plain_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Say in one line what the user or the disk did wrong, without a traceback; exit with 1."""

    @wraps(command)
    def guarded(*args: P.args, **options: P.kwargs) -> None:
        try:
            command(*args, **options)
        except (ValueError, OSError) as error:
            typer.echo(f"seminmf: {error}", err=True)
            raise typer.Exit(1) from error

    return guarded


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
    """Semi-nonnegative matrix factorization: signed data, with gaps, as a sum of few parts."""


@app.command()
@_plain_errors
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


@app.command()
@_plain_errors
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

        seminmf reproduce all --runs 3
    """
    from .experiments import NAMES, run

    options = {"matrices": matrices, "draws": draws, "published": published}
    options = {option: value for option, value in options.items() if value is not None}
    try:
        for chosen in NAMES if name == Experiment.all else [name.value]:
            run(chosen, out / chosen, runs, jobs, seed, data_home, options)
    except KeyboardInterrupt:
        typer.echo("\nStopped. The same command goes on from here.", err=True)
        raise typer.Exit(130) from None
