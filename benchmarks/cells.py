"""What a cell costs under each likelihood, against M = ∞: `python benchmarks/cells.py`.

Three times: the loop over cells alone, an E-step, and a sweep of Newton's method with what the
atoms need. All on one thread and on the same matrix, in float64 and in float32. What tells the rows
of finite dispersion apart is how many units of it are in a cell, √(x² + 4λ₀λ₁) / φ, at the least
and in the middle. All take turns, and each has the best of its times, in seconds of the processor:
machines are shared. Prints a Markdown table.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from iteration import Case
from tables import row, table_head
from threadpoolctl import threadpool_limits

from seminmf._data.dense import DenseSource
from seminmf._data.executor import local_executor
from seminmf._kernels.em.estep import estep, evaluate_rates
from seminmf._kernels.newton.sweep import ONE_STEP, RowProblems, sweep
from seminmf._model.likelihoods import Dispersed, Integer, Likelihood, Real
from seminmf._model.model import NO_BACKGROUND, Background
from seminmf._model.penalties import Maximum
from seminmf._model.priors import Gamma

SIZES = (100, 6000, 10)
BLOCK = 60  # samples whose cells stay in the cache
NOISE = 5.0  # rate that no component explains
REPEATS = 20


class Kind:
    """A likelihood, and a matrix for it."""

    def __init__(self, case: Case, likelihood: Likelihood, noise: float) -> None:
        self.case, self.dtype = case, case.X.dtype
        self.background = NO_BACKGROUND
        if noise > 0:
            self.background = Background(np.full((1, 1), noise / likelihood.unit), np.zeros(1))
        self.likelihood = likelihood.with_roots_above(self.background.least_root)
        self.source = DenseSource(case.X)
        self.activations = (case.start.activations / likelihood.unit).astype(self.dtype)
        self.weights = np.ones(case.n_samples)
        rates = self.activations[:BLOCK] @ case.start.atoms + self.background.rates
        self.block = [
            np.ascontiguousarray(part, dtype=self.dtype).ravel()
            for part in (case.X[:BLOCK] / likelihood.unit, *rates)
        ]

    def roots(self) -> str:
        """How many units of dispersion there are in a cell: least, and median."""
        x, rate0, rate1 = self.block
        roots = np.hypot(x, 2 * np.sqrt(rate0 * rate1))
        return f"{roots.min():.3g}, {np.median(roots):.3g}"

    def runs(self) -> tuple[Callable[[], object], ...]:
        """The loop, the E-step and the sweep."""
        work = [part.copy() for part in self.block]
        atoms, executor = self.case.start.atoms, self.executor
        prior = Gamma(np.ones((1, 1)), np.full((1, 1), 1e-3))
        problems = RowProblems(
            self.likelihood,
            Maximum(self.likelihood.mass),
            prior,
            atoms,
            self.weights,
            self.background,
        )

        def loop() -> None:
            for part, start in zip(work, self.block, strict=True):
                part[:] = start
            evaluate_rates(self.likelihood, *work)

        def one_estep() -> None:
            estep(
                self.source,
                self.likelihood,
                self.activations,
                atoms,
                self.weights,
                executor,
                self.background,
            )

        def one_sweep() -> None:
            gains = np.full(self.case.n_samples, np.inf)
            activations = self.activations.copy()
            sweep(self.source, problems, activations, ONE_STEP, executor, gains=gains, collect=True)

        return loop, one_estep, one_sweep

    def times(self) -> list[float]:
        """Nanoseconds of each for a cell, the best of those so far."""
        cells = [self.block[0].size, self.case.X.size, self.case.X.size]
        for place, (run, count) in enumerate(zip(self.calls, cells, strict=True)):
            start = time.process_time()
            run()
            nanoseconds = 1e9 * (time.process_time() - start) / count
            self.best[place] = min(self.best[place], nanoseconds)
        return self.best

    def open(self, executor: object) -> None:
        """Get ready: all is compiled, and the first times do not count."""
        self.executor = executor
        self.best = [np.inf] * 3
        self.calls = self.runs()
        self.times()
        self.best = [np.inf] * 3


def kinds(dtype: str) -> dict[str, Kind]:
    """The rows of the table."""
    real, counts = Case(SIZES, "real", dtype), Case(SIZES, "integer", dtype)
    return {
        "M = ∞": Kind(real, Real(64.0), NOISE),
        "φ = 1/400": Kind(real, Dispersed.of(1 / 400), NOISE),
        "φ = 1/20": Kind(real, Dispersed.of(1 / 20), NOISE),
        "φ = 1/2": Kind(real, Dispersed.of(1 / 2), NOISE),
        "integers": Kind(counts, Integer(), 0.0),
    }


def main() -> None:
    """Print the table."""
    header = ["ns a cell", "√(x² + 4λ₀λ₁) / φ", "loop", "ratio"]
    header += ["E-step", "ratio", "Newton sweep", "ratio"]
    print(*table_head(header), sep="\n")
    with threadpool_limits(1), local_executor(1) as executor:
        for dtype in ("float64", "float32"):
            rows = kinds(dtype)
            for kind in rows.values():
                kind.open(executor)
            for _ in range(REPEATS):
                for kind in rows.values():
                    kind.times()
            limit = rows["M = ∞"].best
            for name, kind in rows.items():
                cells = [f"{name}, {dtype}", kind.roots()]
                for own, other in zip(kind.best, limit, strict=True):
                    cells += [f"{own:.2f}", f"{own / other:.2f}"]
                print(row(cells), flush=True)


if __name__ == "__main__":
    main()
