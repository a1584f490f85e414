"""Markdown tables over the curves that a benchmark has recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from curves import Curve
from tables import row, table_head

# Start → solver → curve, for one problem.
Runs = dict[int, dict[str, Curve]]

LEVELS = {"0.1 %": 1e-3, "0.01 %": 1e-4}
# An objective is as good as another if it is not below it by more than this share of it.
AS_GOOD = (1e-4, 1e-6)


class Ratio(NamedTuple):
    """How many times faster; `at_least` where the slower one never arrived."""

    value: float
    at_least: bool


def below(best: float, level: float) -> float:
    """The objective that is a share `level` of its size below the best."""
    return best - level * abs(best)


def goal(curves: dict[str, Curve], level: float) -> float:
    """What the solvers have to reach: nearly the best that one of them reached."""
    return below(max(curve.best for curve in curves.values()), level)


def ratio(reference: Curve, curve: Curve, target: float) -> Ratio:
    """Time of the reference over the solver's; 0 if the solver never arrived."""
    own, other = curve.time_to(target), reference.time_to(target)
    if np.isinf(own):
        return Ratio(0.0, False)
    if np.isinf(other):
        return Ratio(reference.duration / own, True)
    return Ratio(other / own, False)


def problem_table(title: str, runs: Runs, reference: str) -> str:
    """Median times of one problem, ratios to the reference, and the best objectives."""
    lines = [f"\n### {title}\n"]
    header = ["solver"]
    for name in LEVELS:
        header += [f"s to {name}", f"{reference} / solver"]
    lines += table_head([*header, "converged", f"best objective of the starts {list(runs)}"])
    for solver in next(iter(runs.values())):
        curves = [starts[solver] for starts in runs.values()]
        cells = [solver]
        for level in LEVELS.values():
            times = [starts[solver].time_to(goal(starts, level)) for starts in runs.values()]
            cells += [_seconds(np.median(times)), _median_ratio([runs], solver, reference, level)]
        cells.append(_count(curve.converged for curve in curves))
        cells.append(", ".join(f"{curve.best:.8g}" for curve in curves))
        lines.append(row(cells))
    return "\n".join(lines)


def summary_table(everything: dict[str, Runs], reference: str) -> str:
    """Over all pairs of problem and start: median ratios, and who ends how well."""
    lines = [
        "\n### All problems and starts\n",
        f"Median of the ratios of time, {reference} / solver. `>`: the reference did not arrive "
        "in some, its whole time is taken. A solver that did not arrive has the ratio 0.",
        f"As good: f ≥ f_ref − share·|f_ref|, f_ref the best objective of {reference} from the "
        "same start. Last column: within 0.1 % of the best of all solvers and starts.\n",
    ]
    header = ["solver", *(f"ratio to {name}" for name in LEVELS)]
    header += [f"as good, share {share:.0e}" for share in AS_GOOD]
    lines += table_head([*header, "near the problem's best"])
    all_runs = list(everything.values())
    for solver in next(iter(all_runs[0].values())):
        cells = [solver]
        cells += [_median_ratio(all_runs, solver, reference, level) for level in LEVELS.values()]
        cells += [_count(_as_good(all_runs, solver, reference, share)) for share in AS_GOOD]
        cells.append(_count(_near_best(all_runs, solver)))
        lines.append(row(cells))
    return "\n".join(lines)


def best_of_table(everything: dict[str, Runs], candidate: str) -> str:
    """Best objective of all starts for each solver, and whether the candidate's is as good."""
    solvers = list(next(iter(next(iter(everything.values())).values())))
    n_starts = len(next(iter(everything.values())))
    others = [solver for solver in solvers if solver != candidate]
    verdict = candidate in solvers and bool(others)
    lines = [f"\n### Best objective of {n_starts} starts (converged; mean seconds of a run)\n"]
    compared = [f"{candidate} − best of the others, relative", f"≥ −{AS_GOOD[-1]:.0e}"]
    lines += table_head(["problem", *solvers, *(compared if verdict else [])])
    for name, runs in everything.items():
        best = {solver: max(starts[solver].best for starts in runs.values()) for solver in solvers}
        cells = [name, *(_best_cell(best[solver], runs, solver) for solver in solvers)]
        if verdict:
            other = max(best[solver] for solver in others)
            difference = (best[candidate] - other) / abs(other)
            cells += [f"{difference:+.1e}", "yes" if difference >= -AS_GOOD[-1] else "no"]
        lines.append(row(cells))
    return "\n".join(lines)


def _best_cell(best: float, runs: Runs, solver: str) -> str:
    curves = [starts[solver] for starts in runs.values()]
    seconds = float(np.mean([curve.duration for curve in curves]))
    converged = _count(curve.converged for curve in curves)
    return f"{best:.8g} ({converged}; {_seconds(seconds)})"


def _median_ratio(all_runs: Sequence[Runs], solver: str, reference: str, level: float) -> str:
    if solver == reference:
        return "–"
    ratios = [
        ratio(starts[reference], starts[solver], goal(starts, level))
        for runs in all_runs
        for starts in runs.values()
    ]
    ratios.sort()
    # What lies above the middle does not move it by being larger still.
    at_least = any(each.at_least for each in ratios[: len(ratios) // 2 + 1])
    median = np.median([each.value for each in ratios])
    return f"{'> ' if at_least else ''}{median:.2f}"


def _as_good(all_runs: Sequence[Runs], solver: str, reference: str, share: float) -> Iterable[bool]:
    for runs in all_runs:
        for starts in runs.values():
            yield starts[solver].best >= below(starts[reference].best, share)


def _near_best(all_runs: Sequence[Runs], solver: str) -> Iterable[bool]:
    for runs in all_runs:
        best = max(curve.best for starts in runs.values() for curve in starts.values())
        for starts in runs.values():
            yield starts[solver].best >= below(best, LEVELS["0.1 %"])


def _count(verdicts: Iterable[bool]) -> str:
    verdicts = list(verdicts)
    return f"{sum(verdicts)} of {len(verdicts)}"


def _seconds(seconds: float) -> str:
    return "never" if np.isinf(seconds) else f"{seconds:.3g}"
