"""How cost grows with the sizes, and what `transform` takes: `python benchmarks/growth.py`.

Prints Markdown tables, progress on stderr. Two threads where there are two cores, because the
largest sizes would take too long on one.

1. Time of one EM iteration and of one Newton iteration for growing J, I and K, their ratio, and the
   time an iteration takes for each cell.
2. Iterations and seconds until the objective is within 1 % of the best found, Newton and SQUAREM.
3. `transform` of 10 000 new samples: time against one EM iteration, and the largest slope left.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser

import numpy as np
from curves import Limits, own_solver
from numpy.random import RandomState
from numpy.typing import NDArray
from problems import problem_of

from seminmf import SkellamSNMF
from seminmf._algorithms import em, newton
from seminmf._algorithms.acceleration import accelerate
from seminmf._algorithms.start import start
from seminmf._kernels.em.estep import evaluate_cells
from seminmf._model.likelihoods import Real
from seminmf._numerics.scaling import power_of_two

# J, I, K: one of them grows at a time, and the largest of all.
ITERATION_SIZES = (
    (2_000, 100, 10),
    (20_000, 100, 10),
    (200_000, 100, 10),
    (20_000, 10, 10),
    (20_000, 1_000, 10),
    (20_000, 100, 2),
    (20_000, 100, 30),
    (20_000, 100, 100),
    (100_000, 1_000, 10),
    (100_000, 1_000, 100),
)
QUALITY_SIZES = (
    (1_000, 50, 5),
    (10_000, 50, 5),
    (1_000, 500, 5),
    (2_000, 100, 10),
    (2_000, 100, 20),
    (2_000, 100, 50),
    (2_000, 200, 100),
)
LEVEL = 1e-2
THREADS = 2


def synthetic(n_samples: int, n_features: int, n_components: int) -> NDArray:
    """Signed sparse components, gamma activations, noise."""
    random = np.random.default_rng(0)
    components = random.normal(size=(n_components, n_features))
    components *= random.random(components.shape) < 0.4
    X = random.gamma(0.7, 1.0, (n_samples, n_components)) @ components
    for block in np.array_split(X, max(1, len(X) // 10_000)):
        block += 0.3 * random.normal(size=block.shape)
    return X


def tell(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def best_time(step, repeats: int) -> float:
    """Least seconds of a call."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return min(times)


def iteration_table(largest: int) -> None:
    """Seconds of an iteration for growing sizes."""
    print("| J | I | K | EM, ms | Newton, ms | Newton / EM | Newton, ns a cell |")
    print("|---|---|---|---|---|---|---|")
    for sizes in ITERATION_SIZES:
        n_samples, n_features, n_components = sizes
        cells = n_samples * n_features
        if cells * n_components > largest:
            print(f"| {n_samples} | {n_features} | {n_components} | left out | | | |")
            continue
        tell(f"iteration, {sizes}")
        X = synthetic(*sizes)
        unit = power_of_two(float(np.abs(X).max()))
        with problem_of(X, n_components, Real(unit=unit), n_jobs=THREADS) as problem:
            point = start(problem, "random", RandomState(0))
            repeats = 5 if cells * n_components < 10**9 else 1
            plain = best_time(lambda point=point: em.step(problem, point), repeats + 1)
            for _ in range(3):  # past the start, where line searches are long
                point = em.step(problem, point)[0]
            state = newton.after_warm_up(problem, point)
            if repeats > 1:
                state, _ = newton.step(problem, state)
            second = best_time(lambda state=state: newton.step(problem, state), repeats)
        print(
            f"| {n_samples} | {n_features} | {n_components} | {1e3 * plain:.1f} | "
            f"{1e3 * second:.1f} | {second / plain:.1f} | {1e9 * second / cells:.1f} |",
            flush=True,
        )


def quality_table(seconds: float) -> None:
    """Iterations and seconds until the objective is good."""
    print(f"\n| J | I | K | solver | iterations to {LEVEL:.0%} | seconds | best objective |")
    print("|---|---|---|---|---|---|---|")
    solvers = {"Newton": newton, "SQUAREM": accelerate(em, "squarem")}
    for sizes in QUALITY_SIZES:
        tell(f"quality, {sizes}")
        X = synthetic(*sizes)
        unit = power_of_two(float(np.abs(X).max()))
        with problem_of(X, sizes[2], Real(unit=unit), n_jobs=THREADS) as problem:
            point = start(problem, "random", RandomState(0))
            curves = {
                name: own_solver(solver)(problem, point, Limits(1e-6, seconds))
                for name, solver in solvers.items()
            }
        best = max(curve.best for curve in curves.values())
        for name, curve in curves.items():
            reached = np.flatnonzero(curve.objectives >= best - LEVEL * abs(best))
            there = f"{reached[0]} | {curve.seconds[reached[0]]:.2f}" if len(reached) else "never |"
            print("|", " | ".join(map(str, sizes)), f"| {name} | {there} | {curve.best:.1f} |")


def transform_table() -> None:
    """Time of `transform` and the slope that it leaves."""
    n_samples, n_features, n_components = 10_000, 200, 10
    X = synthetic(2 * n_samples, n_features, n_components)
    model = SkellamSNMF(n_components, dispersion=0.0, random_state=0, n_jobs=1).fit(X[:n_samples])
    new = X[n_samples:]
    activations = model.transform(new)
    took = best_time(lambda: model.transform(new), 3)
    unit = power_of_two(float(np.abs(new).max()))
    with problem_of(new, n_components, Real(unit=unit)) as problem:
        point = em.Factors(activations / unit, model.atoms_)
        iteration = best_time(lambda: em.step(problem, point), 4)
    cells = evaluate_cells(Real(), new, *(activations @ model.atoms_))
    slopes = model.activation_rate_prior + sum(
        (1 - u) @ atom.T for u, atom in zip((cells.u0, cells.u1), model.atoms_, strict=True)
    )
    # At the optimum λ · slope = 0 and slope ≥ 0.
    gap = np.sum(activations * slopes, axis=1) / np.sum(activations, axis=1)
    print("\n| transform of 10 000 × 200, K = 10, one thread | |\n|---|---|")
    print(f"| seconds | {took:.3f} |")
    print(f"| EM iterations that take as long | {took / iteration:.1f} |")
    print(f"| largest relative complementarity, abs(λ · slope) / Σλ | {np.abs(gap).max():.1e} |")
    print(f"| most negative slope | {slopes.min():.1e} |")


def main() -> None:
    """Print the tables."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=float, default=1e11, help="most cells × components")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a run, second table")
    options = parser.parse_args()
    iteration_table(int(options.largest))
    quality_table(options.seconds)
    transform_table()


if __name__ == "__main__":
    main()
