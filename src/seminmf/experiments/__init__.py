"""The paper's experiments, and what it left for later: `seminmf reproduce`.

Each experiment is a module with three names: `DEFAULT_RUNS`, `plan(settings)`, the runs to do, and
`findings(found, settings)`, the tables and pictures that they give. `_frame` does the rest.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from .._data.executor import count_threads
from ._frame import Experiment, Findings, Settings, reproduce

NAMES = ("parameters", "online", "likelihoods", "clustering", "missing")

__all__ = ["NAMES", "Experiment", "Findings", "Settings", "experiment", "reproduce", "run"]


def experiment(name: str) -> Experiment:
    """The experiment of this name."""
    return import_module(f"{__name__}.{name}")


def run(
    name: str,
    out: Path,
    runs: int | None = None,
    jobs: int | None = None,
    seed: int = 0,
    data_home: Path | None = None,
    options: dict[str, Any] | None = None,
) -> Findings:
    """Do an experiment, print what it finds, and write it to the folder `out`."""
    from rich.console import Console

    module = experiment(name)
    settings = Settings(
        out, runs or module.DEFAULT_RUNS, count_threads(jobs), seed, data_home, options or {}
    )
    return reproduce(module, settings, Console(highlight=False))
