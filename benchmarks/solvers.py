"""Time to quality of all solvers, against Wonterfact: `python benchmarks/solvers.py`.

Every solver runs on one thread from the same random starts until it has converged or its time is
over. The goal of a start is the best objective f that any solver reached from it: 0.1 % of it is
f − 1e-3·|f|. Prints Markdown tables, progress on stderr.

    python benchmarks/solvers.py                            all problems, three starts
    python benchmarks/solvers.py --problems image,counts    some of them
    python benchmarks/solvers.py --bayes                    VBEM and its bound: plain, accelerated
    python benchmarks/solvers.py --best-of 10               best objective of ten starts
    python benchmarks/solvers.py --csv curves.csv           points to plot, as well
"""

from __future__ import annotations

import csv
import sys
import warnings
from argparse import ArgumentParser, Namespace
from typing import Any, TypeVar

import wonterfact_peer
from curves import Curve, Limits, Solver, own_solver, wonterfact
from numpy.random import RandomState
from problems import PROBLEMS, Case
from reports import Runs, best_of_table, problem_table, summary_table
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from seminmf import BayesianSkellamSNMF
from seminmf._algorithms import em, newton, vb
from seminmf._algorithms.acceleration import accelerate
from seminmf._algorithms.start import start

T = TypeVar("T")

ACCELERATIONS = ("squarem", "parabolic")
# What --best-of compares, unless told.
BEST_OF = ("em", "em squarem", "newton")
# So many samples and iterations have everything compiled.
WARM_SAMPLES = 300
WARM_ITERATIONS = 230


def point_solvers() -> dict[str, Solver]:
    """Solvers for the maximum a posteriori; the others are compared with the first."""
    solvers: dict[str, Solver] = {}
    if wonterfact_peer.installed():
        solvers["wonterfact"] = wonterfact
    solvers |= _accelerated("em", em)
    solvers["newton"] = own_solver(newton)
    return solvers


def bayes_solvers() -> dict[str, Solver]:
    """Solvers for the posterior; the others are compared with the first."""
    return _accelerated("vb", vb)


def _accelerated(name: str, algorithm: Any) -> dict[str, Solver]:
    """An algorithm, plain and with each acceleration."""
    solvers = {name: own_solver(algorithm)}
    for method in ACCELERATIONS:
        solvers[f"{name} {method}"] = own_solver(accelerate(algorithm, method))
    return solvers


def noise_level(case: Case) -> float:
    """The dispersion that BayesianSkellamSNMF chooses for a case without a component for noise."""
    model = BayesianSkellamSNMF(
        case.n_components,
        likelihood=case.likelihood,
        noise=None,
        max_iter=0,
        random_state=0,
        n_jobs=1,
    )
    return model.fit(case.X).dispersion_


def collect(case: Case, solvers: dict[str, Solver], options: Namespace, journal: Journal) -> Runs:
    """Run every solver from every start of a case."""
    scale = noise_level(case) if options.bayes else 1.0

    def run(case: Case, solver: Solver, seed: int, limits: Limits) -> Curve:
        with case.problem(scale) as problem:
            point = start(problem, "random", RandomState(seed))
            state = vb.state_from(problem, point) if options.bayes else point
            return solver(problem, state, limits)

    short = case.head(WARM_SAMPLES)
    for solver in solvers.values():
        run(short, solver, 0, Limits(tol=0, max_iter=WARM_ITERATIONS))
    limits = Limits(options.tol, options.seconds)
    runs: Runs = {seed: {} for seed in range(options.starts)}
    for seed, curves in runs.items():
        for name, solver in solvers.items():
            curves[name] = run(case, solver, seed, limits)
            journal.add(case.name, seed, name, curves[name])
    return runs


class Journal:
    """Progress on stderr, and all curves in a CSV file, if one is wanted."""

    def __init__(self, n_runs: int, path: str | None) -> None:
        self._bar = tqdm(total=n_runs, unit="run")
        self._file = open(path, "w", newline="") if path else None  # noqa: SIM115
        self._write(["problem", "start", "solver", "seconds", "objective"])

    def add(self, problem: str, seed: int, solver: str, curve: Curve) -> None:
        """One more run."""
        end = "converged" if curve.converged else "not converged"
        self._bar.update()
        tqdm.write(
            f"{problem}, start {seed}, {solver}: {curve.best:.8g}, {end} after "
            f"{curve.duration:.1f} s",
            file=sys.stderr,
        )
        for point in curve.thinned():
            self._write([problem, seed, solver, *point])

    def _write(self, cells: list[object]) -> None:
        if self._file is not None:
            csv.writer(self._file).writerow(cells)
            self._file.flush()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()
        if self._file is not None:
            self._file.close()


def report_speed(
    cases: list[Case], solvers: dict[str, Solver], options: Namespace, journal: Journal
) -> None:
    """Time to quality: a table for each problem as soon as it is known, and one over all."""
    reference = next(iter(solvers))
    everything: dict[str, Runs] = {}
    for case in cases:
        everything[case.name] = collect(case, solvers, options, journal)
        tqdm.write(problem_table(case.title, everything[case.name], reference))
    tqdm.write(summary_table(everything, reference))


def report_best(
    cases: list[Case], solvers: dict[str, Solver], options: Namespace, journal: Journal
) -> None:
    """Best objective of all starts."""
    everything = {case.name: collect(case, solvers, options, journal) for case in cases}
    tqdm.write(best_of_table(everything, "newton"))


def choose(names: str | None, known: dict[str, T]) -> dict[str, T]:
    """What a list with commas names, in the order that is known; all if there is no list."""
    chosen = names.split(",") if names else list(known)
    for name in chosen:
        if name not in known:
            sys.exit(f"{name!r} is none of {', '.join(known)}.")
    return {name: value for name, value in known.items() if name in chosen}


def parse() -> tuple[Namespace, list[Case], dict[str, Solver]]:
    """Options, problems and solvers from the command line."""
    parser = ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", metavar="A,B", help=f"of {', '.join(PROBLEMS)}")
    parser.add_argument("--solvers", metavar="A,B", help="the others are compared with the first")
    parser.add_argument("--starts", type=int, default=3, help="random starts of each problem")
    parser.add_argument("--seconds", type=float, default=60, help="most time of a run")
    parser.add_argument("--tol", type=float, default=1e-7, help="when a run has converged")
    parser.add_argument("--bayes", action="store_true", help="VBEM instead of point estimates")
    parser.add_argument("--best-of", type=int, metavar="N", help="compare the best of N starts")
    parser.add_argument("--csv", metavar="FILE", help="write points of all curves")
    options = parser.parse_args()
    options.starts = options.best_of or options.starts
    known = bayes_solvers() if options.bayes else point_solvers()
    if options.best_of and not options.solvers and not options.bayes:
        known = {name: solver for name, solver in known.items() if name in BEST_OF}
    cases = [build() for build in choose(options.problems, PROBLEMS).values()]
    return options, cases, choose(options.solvers, known)


def main() -> None:
    """Measure, and print the tables."""
    warnings.simplefilter("ignore")
    options, cases, solvers = parse()
    if not options.bayes and not wonterfact_peer.installed():
        print('Wonterfact is not installed and left out: `pip install ".[bench]"` brings it.')
    report = report_best if options.best_of else report_speed
    n_runs = len(cases) * len(solvers) * options.starts
    with threadpool_limits(1), Journal(n_runs, options.csv) as journal:
        report(cases, solvers, options, journal)


if __name__ == "__main__":
    main()
