"""What all experiments share: settings, runs that are done once, tables, files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .._estimators.container import written_whole
from .._views.pictures import png
from ._runs import Run, run_all
from ._tables import Table, as_csv, as_markdown, show

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import Console


@dataclass(frozen=True)
class Settings:
    """What the user asked for.

    Attributes
    ----------
    out : Path
        Folder of the experiment's files.
    runs : int
        Number of runs, or of draws, of everything.
    jobs : int
        Processes at the same time.
    seed : int
    data_home : Path or None
        Folder of data sets that do not come with the package.
    options : dict
        What one experiment alone knows, such as the number of matrices.
    """

    out: Path
    runs: int
    jobs: int = 1
    seed: int = 0
    data_home: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)


class Findings(NamedTuple):
    """What an experiment shows: tables, pictures by name, and remarks."""

    tables: Sequence[Table]
    pictures: dict[str, Figure]
    remarks: Sequence[str] = ()


class Experiment(Protocol):
    """What a module of an experiment has."""

    DEFAULT_RUNS: int
    plan: Callable[[Settings], list[list[Run]]]
    findings: Callable[[pd.DataFrame, Settings], Findings]


def reproduce(experiment: Experiment, settings: Settings, console: Console) -> Findings:
    """Do the runs that are not done yet, show what all of them say, and write it down."""
    settings.out.mkdir(parents=True, exist_ok=True)  # rather fail now than after the work
    found = run_all(
        experiment.plan(settings),
        settings.out / "runs.jsonl",
        settings.jobs,
        progress=sys.stderr.isatty(),
    )
    findings = experiment.findings(found, settings)
    for table in findings.tables:
        show(table, console)
    for remark in findings.remarks:
        console.print(remark, markup=False)
    files = _write(findings, found, settings.out)
    console.print(f"Written to {settings.out}: {', '.join(files)}", markup=False, soft_wrap=True)
    return findings


def _write(findings: Findings, found: pd.DataFrame, folder: Path) -> list[str]:
    """Write all files, each whole or not at all, and return their names."""
    texts = {f"{table.name}.csv": as_csv(table) for table in findings.tables}
    texts["results.md"] = "\n\n".join(
        [*(as_markdown(table) for table in findings.tables), *findings.remarks, ""]
    )
    texts["runs.csv"] = found.to_csv(index=False)
    contents = {name: text.encode() for name, text in texts.items()}
    contents |= {f"{name}.png": png(figure) for name, figure in findings.pictures.items()}
    for name, content in contents.items():
        with written_whole(folder / name) as file:
            file.write(content)
    return sorted(contents)
