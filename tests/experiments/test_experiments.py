"""What all experiments share: runs that are done once, tables, files, the command."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from typer.testing import CliRunner
from workers import note

from seminmf import cli, experiments
from seminmf.experiments import Findings, Settings, reproduce
from seminmf.experiments._runs import Run, run_all
from seminmf.experiments._tables import Table, as_csv, as_markdown, mean_and_spread, show

TABLE = Table(
    name="name",
    title="A [bold]title[/]",
    columns=["what", "a | b"],
    rows=[["x", "1 | 2"], ["y, z", "[red]"]],
)


def chains(folder, names, fails=()):
    return [
        [
            Run({"name": name}, partial(note, str(folder), name, name in fails))
            for name in chain.split()
        ]
        for chain in names
    ]


def done(folder):
    return (folder / "done").read_text().split()


@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_are_done_once_and_chains_in_order(tmp_path, jobs):
    work = chains(tmp_path, ["a bb ccc", "dddd", "eeeee f"])
    found = run_all(work, tmp_path / "runs", jobs)
    assert found["name"].tolist() == ["a", "bb", "ccc", "dddd", "eeeee", "f"]
    assert found["value"].tolist() == [1, 2, 3, 4, 5, 1]
    order = done(tmp_path)
    assert sorted(order) == sorted(found["name"])
    assert order.index("a") < order.index("bb") < order.index("ccc")
    again = run_all(work, tmp_path / "runs", jobs)
    assert done(tmp_path) == order
    assert again.drop(columns="list").equals(found.drop(columns="list"))
    more = run_all([*work, *chains(tmp_path, ["gg"])], tmp_path / "runs", jobs)
    assert done(tmp_path) == [*order, "gg"] and len(more) == 7


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_failed_is_done_again_and_nothing_else(tmp_path, jobs):
    names = ["a bb", "ccc dddd eeeee"]
    with pytest.raises(RuntimeError, match="dddd"):
        run_all(chains(tmp_path, names, fails=["dddd"]), tmp_path / "runs", jobs)
    before = {json.loads(line)[0]["name"] for line in (tmp_path / "runs").open()}
    assert "dddd" not in before and "eeeee" not in before
    found = run_all(chains(tmp_path, names), tmp_path / "runs", jobs)
    assert found["name"].tolist() == ["a", "bb", "ccc", "dddd", "eeeee"]
    for name in before:
        assert done(tmp_path).count(name) == 1


def test_a_line_that_was_cut_off_is_done_again(tmp_path):
    work = chains(tmp_path, ["a bb ccc"])
    run_all(work, tmp_path / "runs", 1)
    whole = (tmp_path / "runs").read_text()
    (tmp_path / "runs").write_text(whole[:-9])
    run_all(work, tmp_path / "runs", 1)
    assert done(tmp_path) == ["a", "bb", "ccc", "ccc"]
    # What was appended after the broken line is whole.
    run_all(work, tmp_path / "runs", 1)
    assert len(done(tmp_path)) == 4


def test_a_fit_that_was_interrupted_is_no_result(tmp_path):
    """Ctrl-C ends a fit, which then returns what it has: it must not be written down."""
    work = [[Run({"n": 0}, interrupted_fit)]]
    with pytest.raises(KeyboardInterrupt):
        run_all(work, tmp_path / "runs", 1)
    assert (tmp_path / "runs").read_text() == ""
    with pytest.raises(KeyboardInterrupt):  # and Ctrl-C is as it was before
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)


def interrupted_fit():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    except KeyboardInterrupt:
        return {"value": 1}


SLEEPER = """
import sys
from functools import partial
from pathlib import Path
from workers import sleep
from seminmf.experiments._runs import Run, run_all
if __name__ == "__main__":
    chains = [[Run({"n": 0}, partial(sleep, 0.0))], [Run({"n": 1}, partial(sleep, 600.0))]]
    run_all(chains, Path(sys.argv[1]) / "runs", 2)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stop_ends_all_processes_at_once(tmp_path, stop):
    script = tmp_path / "script.py"
    script.write_text(SLEEPER)
    folders = Path(__file__).parents[2] / "src", Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, str(script), str(tmp_path)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    runs = tmp_path / "runs"
    while process.poll() is None and not (runs.exists() and runs.read_text()):
        time.sleep(0.02)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) >= 2
    process.send_signal(stop)
    process.wait(timeout=20)
    limit = time.monotonic() + 20
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < limit
        time.sleep(0.02)
    assert json.loads(runs.read_text())[0] == {"n": 0}


def test_runs_must_differ(tmp_path):
    with pytest.raises(ValueError, match="same key"):
        run_all(chains(tmp_path, ["a", "a"]), tmp_path / "runs", 1)
    assert not (tmp_path / "done").exists()


def test_tables_say_the_same_in_all_forms():
    assert as_csv(TABLE) == 'what,a | b\nx,1 | 2\n"y, z",[red]\n'
    lines = as_markdown(TABLE).splitlines()
    assert lines[0] == "**A [bold]title[/]**" and lines[2] == "| what | a \\| b |"
    console = Console(file=StringIO(), width=80)
    show(TABLE, console)
    text = console.file.getvalue()
    assert "[bold]title[/]" in text and "[red]" in text  # text is not markup


def test_standard_deviations_divide_by_n():
    assert mean_and_spread([1.0, 3.0], 2) == "2.00 | 1.00"


def little(settings: Settings):
    from matplotlib.figure import Figure

    experiment = SimpleNamespace(
        DEFAULT_RUNS=2,
        plan=lambda settings: chains(settings.out, ["a"] * 1),
        findings=lambda found, settings: Findings([TABLE], {"picture": Figure()}, ["A remark."]),
    )
    console = Console(file=StringIO(), width=100)
    return reproduce(experiment, settings, console), console.file.getvalue()


def test_all_is_printed_and_written(tmp_path):
    findings, text = little(Settings(tmp_path / "new" / "folder", 1))
    assert findings.tables == [TABLE]
    assert "A remark." in text and "1 | 2" in text and "picture.png" in text
    names = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert names == {"done", "name.csv", "picture.png", "results.md", "runs.csv", "runs.jsonl"}
    assert "A remark." in (tmp_path / "new" / "folder" / "results.md").read_text()


# --- the command --------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def test_the_command_knows_all_experiments():
    assert {name.value for name in cli.Experiment} == {*experiments.NAMES, "all"}
    for name in experiments.NAMES:
        module = experiments.experiment(name)
        assert module.DEFAULT_RUNS >= 1 and callable(module.plan) and callable(module.findings)


def test_the_command_hands_everything_over(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(experiments, "run", lambda *arguments: calls.append(arguments))
    out = ("--out", tmp_path, "--runs", 3, "--jobs", 1, "--seed", 7, "--data-home", tmp_path)
    result = run("reproduce", "all", *out, "--matrices", 60)
    assert result.exit_code == 0, result.output
    assert [call[0] for call in calls] == list(experiments.NAMES)
    options = {"matrices": 60, "draws": 20, "published": False}
    assert calls[0] == ("parameters", tmp_path / "parameters", 3, 1, 7, tmp_path, options)
    calls.clear()
    assert run("reproduce", "online", "--out", tmp_path).exit_code == 0
    assert calls == [
        ("online", tmp_path / "online", None, None, 0, None, {"draws": 20, "published": False})
    ]


def test_a_stop_is_no_error_and_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "run", interrupted)
    result = run("reproduce", "online", "--out", tmp_path)
    assert result.exit_code == 130
    assert "same command goes on" in result.output


@pytest.mark.parametrize(
    "arguments",
    [("nothing",), ("online", "--runs", 0), ("all", "--jobs", -1), ("all", "--data-home", "none")],
)
def test_bad_arguments_exit_with_2(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("reproduce", *arguments).exit_code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_killed_experiment_goes_on(tmp_path):
    """As a subprocess, killed in the middle; the end is that of one that was not."""
    code = """
import sys
from pathlib import Path
from seminmf import experiments
experiments.run("parameters", Path(sys.argv[1]), 2, 1, 0, None, {"draws": 3, "samples": 60})
"""

    def command(name):
        return [sys.executable, "-c", code, str(tmp_path / name)]

    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    killed = subprocess.Popen(command("killed"), env=environment)
    runs = tmp_path / "killed" / "runs.jsonl"
    while killed.poll() is None and not (runs.exists() and runs.read_text().count("\n") >= 2):
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    before = runs.read_text()
    for name in ("killed", "whole"):
        done = subprocess.run(command(name), env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr
    assert runs.read_text().startswith(before[: before.rfind("\n")])
    first, second = ((tmp_path / name / "errors.csv").read_text() for name in ("killed", "whole"))
    assert first == second


def test_work_is_found_by_name_in_a_fresh_process():
    for name in ("clustering", "online", "parameters", "likelihoods"):
        plan = experiments.experiment(name).plan(Settings(Path("nowhere"), 1))
        for chain in plan:
            work = chain[0].work
            while isinstance(work, partial):
                work = work.func
            assert getattr(sys.modules[work.__module__], work.__name__) is work
