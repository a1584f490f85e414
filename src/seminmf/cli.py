"""The command `seminmf`.

Commands import what they need when they run, so that `seminmf --help` is quick. A new command is a
function below with `@app.command()` and `@_plain_errors` that hands over to a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable
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
