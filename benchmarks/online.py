"""Are priors learned from a stream, every time? The paper's online experiment on many draws.

A stream has matrices of 5000 samples and 3 features, with 2 components, whose parameters are drawn
anew from one prior: "low uncertainty, low variance" in the paper. The learner starts from a prior
that says nothing, and never sees the parameters. Run it with ``python benchmarks/online.py``; it
prints a Markdown table, writes the curves of each draw to ``--out``, from which it goes on after a
stop, and draws them.

- *error*: mean square error of the learned shapes of the atoms, for the best order of components,
  as a share of what it was at the start;
- *mse_m*: mean square error of the means of the hidden sources, λ_kj (θ_0ki − θ_1ki), in the last
  hundred matrices, over that of variational Bayes (VBEM) on the same matrices with the true prior.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.random import RandomState
from numpy.typing import NDArray
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, PriorLearner, load, sample_skellam_snmf

N_FEATURES, N_COMPONENTS = 3, 2
# Matrices at the end that are compared with the true prior, and those over which curves are smooth.
LAST, WINDOW = 100, 30
# A few iterations are enough to begin with: the learner's own posterior comes after.
START = {"max_iter": 20, "tol": 1e-3}
REFERENCE = {"init": "prior", "max_iter": 300, "tol": 1e-4}
SAVED_EVERY = 50


class Truth(NamedTuple):
    """Hyperparameters of a stream."""

    activation_shape: NDArray
    activation_rate: NDArray
    atom_shape: NDArray

    @classmethod
    def draw(cls, seed: int) -> Truth:
        """Shapes of atoms between 1 and 11, of which each entry has one sign."""
        shape = 1 + 10 * RandomState(seed).uniform(size=(2, N_COMPONENTS, N_FEATURES))
        shape[shape == shape.min(axis=0)] = 0.02
        activation_shape = np.array([5.0, 50.0])
        return cls(activation_shape, activation_shape / 300, shape)

    def matrix(self, seed: int, number: int, n_samples: int) -> tuple[NDArray, NDArray, NDArray]:
        """Data, atoms and activations of one matrix."""
        return sample_skellam_snmf(
            n_samples,
            N_FEATURES,
            N_COMPONENTS,
            **self._asdict(),
            random_state=10**5 * seed + number,
        )

    def parameters(self) -> dict[str, NDArray]:
        """As those of an estimator."""
        return {f"{name}_prior": value for name, value in self._asdict().items()}


def in_best_order(error, *arrays: NDArray) -> float:
    """The smallest error over all orders of the components, which are on the second axis."""
    orders = itertools.permutations(range(N_COMPONENTS))
    return min(error(*(array[:, list(order)] for array in arrays)) for order in orders)


def shape_error(truth: Truth, atom_shape: NDArray) -> float:
    """Mean square error of the atoms' shapes."""
    shapes = np.broadcast_to(atom_shape, truth.atom_shape.shape)
    return in_best_order(lambda s: float(np.mean((s - truth.atom_shape) ** 2)), shapes)


def source_error(atoms: NDArray, activations: NDArray, model: BayesianSkellamSNMF) -> float:
    """mse_m of a fit."""
    means = activations[:, :, None] * (atoms[0] - atoms[1])

    def error(found_atoms: NDArray, found: NDArray) -> float:
        return float(np.mean((means - found[:, :, None] * (found_atoms[0] - found_atoms[1])) ** 2))

    return in_best_order(error, model.atoms_, model.activations_)


def counts(**parameters) -> BayesianSkellamSNMF:
    """An estimator for integers, on one core."""
    defaults = {"likelihood": "integer", "n_jobs": 1, "random_state": 0}
    return BayesianSkellamSNMF(N_COMPONENTS, **(defaults | parameters))


def neutral(seed: int) -> BayesianSkellamSNMF:
    """The estimator whose prior says nothing, of which the learner starts."""
    shape = 1 + 1e-5 * RandomState(seed + 77).uniform(size=(2, N_COMPONENTS, N_FEATURES))
    return counts(atom_shape_prior=shape, activation_rate_prior=1e-3, **START)


def run(seed: int, options: argparse.Namespace) -> Path:
    """One stream, or what is left of it; writes the learner and its curves now and then."""
    warnings.simplefilter("ignore")
    path, saved = (options.out / f"draw{seed}.{kind}" for kind in ("npz", "safetensors"))
    truth = Truth.draw(seed)
    learner = load(saved) if path.exists() and saved.exists() else None
    if learner is not None:
        with np.load(path) as found:
            curves = {name: found[name].tolist() for name in found.files}
    # A stop between the two files would leave them apart.
    if learner is None or learner.n_matrices_ != len(curves["sources"]):
        learner = PriorLearner(
            neutral(seed), learning_rate=options.rate, posterior=options.posterior
        )
        curves = {"errors": [shape_error(truth, np.ones(1))], "sources": [], "seconds": []}
        curves["compared"] = []
    for number in range(len(curves["sources"]), options.matrices):
        X, atoms, activations = truth.matrix(seed, number, options.samples)
        prior = (learner.estimator_ if number else learner.estimator).get_params()
        begin = time.perf_counter()
        learner.partial_fit(X)
        curves["seconds"].append(time.perf_counter() - begin)
        curves["errors"].append(shape_error(truth, learner.estimator_.atom_shape_prior))
        curves["sources"].append(source_error(atoms, activations, learner.last_))
        # What variational Bayes makes of the matrix with the true prior, and with the learned one.
        if number >= options.matrices - LAST:
            names = truth.parameters()
            curves["compared"].append(
                [
                    source_error(atoms, activations, counts(**REFERENCE, **parameters).fit(X))
                    for parameters in (names, {name: prior[name] for name in names})
                ]
            )
        if (number + 1) % SAVED_EVERY == 0 or number + 1 == options.matrices:
            learner.save(saved)
            np.savez(path, **curves)
    return path


def summary(seed: int, path: Path) -> tuple[list[object], bool]:
    """A row of the table, and whether all is as it should be."""
    with np.load(path) as curves:
        share = curves["errors"] / curves["errors"][0]
        sources = curves["sources"][-LAST:].mean()
        true, learned = curves["compared"][-LAST:].mean(axis=0)
        seconds = float(curves["seconds"].mean())
    middle = min(600, len(share) - 1)
    for_good = int(np.flatnonzero(share >= 0.1).max()) + 1
    good = for_good <= middle and sources <= 1.15 * true
    cells = [
        seed,
        for_good,
        *(f"{share[min(n, len(share) - 1)]:.3f}" for n in (100, 300, 600)),
        f"{share[middle:].max():.3f}",
        f"{share[-1]:.3f}",
        f"{sources:.0f}",
        f"{true:.0f}",
        f"{sources / true:.2f}",
        f"{learned / true:.2f}",
        f"{seconds:.2f}",
        "yes" if good else "**no**",
    ]
    return cells, good


def table(paths: dict[int, Path]) -> None:
    """Print the table."""
    header = ["draw", "below 10 % from matrix", "error at 100", "at 300", "at 600"]
    header += ["largest after 600", "at the end", "mse_m", "VBEM, true prior", "ratio"]
    header += ["VBEM, learned prior: ratio", "s a matrix", "good"]
    print("\n".join(table_head(header)))
    rows = [summary(seed, path) for seed, path in paths.items()]
    for cells, _ in rows:
        print(row(cells))
    print(f"\n{sum(good for _, good in rows)} of {len(rows)} good.")


def smooth(values: NDArray) -> NDArray:
    """Means over a window, which is shorter at the start."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(sums))
    begins = np.maximum(ends - WINDOW, 0)
    return (sums[ends] - sums[begins]) / (ends - begins)


def draw_curves(paths: dict[int, Path], target: Path) -> None:
    """Both curves of the paper's figure, one line for each draw."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots(1, 2)
    for path in paths.values():
        with np.load(path) as curves:
            axes[0].plot(curves["errors"], color="C0", alpha=0.5, linewidth=1)
            axes[1].plot(smooth(curves["sources"]), color="C1", alpha=0.5, linewidth=1)
    axes[0].set_ylabel("mean square error of the atoms' shapes")
    axes[1].set_ylabel(f"mse_m, mean over {WINDOW} matrices")
    for axis in axes:
        axis.set_xlabel("number of matrices")
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
    figure.savefig(target, dpi=120)


def main() -> None:
    """Run the streams, print the table, draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=20, help="number of hyperparameters")
    parser.add_argument("--matrices", type=int, default=1300)
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--rate", default="annealed", type=_rate)
    parser.add_argument("--posterior", default="auto")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("online"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    seeds = range(options.draws)
    found = Parallel(n_jobs=options.jobs, verbose=5)(delayed(run)(seed, options) for seed in seeds)
    paths = dict(zip(seeds, found, strict=True))
    table(paths)
    draw_curves(paths, options.out / "curves.png")


def _rate(text: str) -> float | str:
    return float(text) if text[0].isdigit() else text


if __name__ == "__main__":
    main()
