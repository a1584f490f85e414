"""What pays where components are many: `python benchmarks/large_k.py`.

Prints Markdown tables, on one thread, in seconds of the processor: machines are shared. The unit of
time is what 300 iterations of plain EM take from the same start.

1. Whole fits: the default, as it comes, and 300 iterations of EM at the dispersion that it found;
   which solver the default took, its seconds over EM's, and by how much its objective is ahead.
2. ``--race``: solvers against each other where there is no noise to be found (M = ∞, integers): by
   how much their objectives are below the best of all, after so many times EM's seconds, and when
   they converged.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

import numpy as np
from curves import Curve
from numpy.random import RandomState
from numpy.typing import NDArray
from problems import problem_of
from tables import row, table_head

from seminmf import SkellamSNMF
from seminmf._algorithms import em, loop, newton
from seminmf._algorithms.acceleration import accelerate
from seminmf._algorithms.start import start
from seminmf._model.likelihoods import Integer, Real
from seminmf._numerics.scaling import power_of_two
from seminmf.experiments._hidden import quiet_and_alone

RATIO = 3.0
EM_ITERATIONS = 300
SOLVERS = {"SQUAREM": accelerate(em, "squarem"), "Newton": newton}
# Times at which solvers are compared, in EM's seconds.
TIMES = (1, 2, 4, 8, 16)
# Arguments of the estimator for each kind of data.
KINDS: dict[str, dict[str, Any]] = {
    "noise": {},
    "real": {"dispersion": 0.0},
    "integer": {"likelihood": "integer"},
}


def matrix(kind: str, n_samples: int, n_features: int, n_components: int) -> NDArray:
    """Dense signed components, gamma activations; noise, or counts."""
    random = np.random.default_rng(0)
    activations = random.gamma(0.5, size=(n_samples, n_components))
    components = random.normal(size=(n_components, n_features))
    components /= np.abs(components).sum(axis=1, keepdims=True)
    if kind == "integer":
        atoms = 20 * np.array([np.maximum(components, 0), np.maximum(-components, 0)])
        return np.subtract(*random.poisson(activations @ atoms)).astype(float)
    signal = activations @ components
    return signal + random.normal(size=signal.shape) * signal.std() / RATIO


class Clock:
    """In the place of a progress bar: notes seconds and objective, and ends the run in time."""

    def __init__(self, limit: float) -> None:
        self.seconds: list[float] = []
        self.objectives: list[float] = []
        self._limit = limit
        self._begin = time.process_time()

    def skip(self, n: int) -> None:
        """Nothing was done before."""

    def update(self, objective: float) -> None:
        """One more iteration; Ctrl-C is how a run ends early."""
        self.seconds.append(time.process_time() - self._begin)
        self.objectives.append(objective)
        if self.seconds[-1] > self._limit:
            raise KeyboardInterrupt


def run(algorithm: Any, problem: Any, point: Any, stopping: loop.Stopping, limit: float) -> Curve:
    """A run, and when it had which objective."""
    clock = Clock(limit)
    result = loop.run(algorithm, problem, lambda: point, stopping, clock)
    return Curve(np.array(clock.seconds), np.array(clock.objectives), result.converged)


def at(curve: Curve, seconds: float) -> float:
    """The objective after some seconds."""
    return float(curve.objectives[: np.searchsorted(curve.seconds, seconds) + 1][-1])


def race(kind: str, n_samples: int, n_features: int, n_components: int) -> list[list[object]]:
    """Rows for each solver."""
    X = matrix(kind, n_samples, n_features, n_components)
    likelihood = Integer() if kind == "integer" else Real(unit=power_of_two(float(np.abs(X).max())))
    with problem_of(X, n_components, likelihood, n_jobs=1) as problem:
        point = start(problem, "random", RandomState(0))
        em.step(problem, point), newton.step(problem, newton.after_warm_up(problem, point))
        stopping = loop.Stopping(EM_ITERATIONS, 0.0)
        curves = {"EM": run(em, problem, point, stopping, np.inf)}
        unit = curves["EM"].duration
        stopping = loop.Stopping(10**6, 1e-4)
        for name, algorithm in SOLVERS.items():
            curves[name] = run(algorithm, problem, point, stopping, TIMES[-1] * unit)
    best = max(curve.best for curve in curves.values())
    rows = []
    for name, curve in curves.items():
        behind = (f"{(best - at(curve, t * unit)) / abs(best):.2%}" for t in TIMES)
        end = f"{curve.duration / unit:.1f}" if curve.converged else "not"
        sizes = f"{n_samples}, {n_features}, {n_components}"
        rows.append([kind, sizes, name, len(curve.seconds), *behind, end])
    return rows


def whole(kind: str, n_samples: int, n_features: int, n_components: int) -> list[object]:
    """The row of a default fit."""
    X = matrix(kind, n_samples, n_features, n_components)
    options = {"random_state": 0, "n_jobs": 1, **KINDS[kind]}
    plain = {"solver": "em", "acceleration": None, "max_iter": EM_ITERATIONS, "tol": 0}

    def fit(**more: Any) -> tuple[SkellamSNMF, float]:
        begin = time.process_time()
        model = SkellamSNMF(n_components, **options | more).fit(X)
        return model, time.process_time() - begin

    with quiet_and_alone():
        SkellamSNMF(2, **options).fit(X[:100])
        SkellamSNMF(2, **options | plain | {"max_iter": 2}).fit(X[:100])
        default, seconds = fit()
        told = {} if kind != "noise" else {"dispersion": default.dispersion_}
        other, em_seconds = fit(**plain | told)
    ahead = (default.objective_ - other.objective_) / abs(other.objective_)
    sizes = f"{n_samples}, {n_features}, {n_components}"
    return [
        kind,
        sizes,
        default.solver_,
        default.n_iter_,
        f"{seconds:.1f}",
        f"{em_seconds:.1f}",
        f"{seconds / em_seconds:.2f}",
        f"{ahead:.2%}",
    ]


def main() -> None:
    """Print the tables."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--race", action="store_true")
    parser.add_argument("--kinds", nargs="+", choices=KINDS)
    parser.add_argument("--components", nargs="+", type=int, default=[60, 100])
    parser.add_argument("--shape", nargs=2, type=int, default=[2000, 200], metavar=("J", "I"))
    options = parser.parse_args()
    kinds = options.kinds or [kind for kind in KINDS if not options.race or kind != "noise"]
    sizes = "samples, features, components"
    if options.race:
        times = [f"after {t}" for t in TIMES]
        print("\n".join(table_head(["data", sizes, "solver", "iterations", *times, "converged"])))
    else:
        columns = ["solver", "iterations", "default, s", "EM, s", "ratio", "objective ahead"]
        print("\n".join(table_head(["data", sizes, *columns])))
    for kind in kinds:
        for n_components in options.components:
            size = *options.shape, n_components
            for line in race(kind, *size) if options.race else [whole(kind, *size)]:
                print(row(line), flush=True)


if __name__ == "__main__":
    main()
