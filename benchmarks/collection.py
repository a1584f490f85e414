"""Does a collection of thirty matrices tell the prior that it was drawn from?

The matrices are those of ``seminmf reproduce online``. Run it with ``python
benchmarks/collection.py``; it prints a Markdown table. Learned values are compared with the truth,
and with what would be learned if all atoms and activations were seen: no method can know more.
Differences of the shapes of atoms above 0.1 are in units of their sampling error, the standard
deviation of ln α if the atoms were seen.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma
from tables import row, table_head

from seminmf import PriorLearner
from seminmf._model.model import PARAMETERS, Priors
from seminmf._prior_learning.prior_statistics import Expectations, Maps, Statistics, update_prior
from seminmf.experiments._scenarios import N_FEATURES
from seminmf.experiments.online import N_COMPONENTS, STREAM, neutral


def sampling_errors(shape: NDArray, n_matrices: int) -> NDArray:
    """Standard deviations of ln α, if the atoms of so many matrices are known."""
    deviations = np.empty_like(shape)
    for k in range(shape.shape[1]):
        own = shape[:, k].ravel()
        information = n_matrices * (np.diag(polygamma(1, own)) - polygamma(1, own.sum()))
        variances = np.diag(np.linalg.inv(information)).reshape(shape[:, k].shape)
        deviations[:, k] = np.sqrt(variances) / shape[:, k]
    return deviations


def best_prior(parameters: list[tuple[NDArray, NDArray]]) -> Priors:
    """The prior that suits atoms and activations that are seen."""
    row_of_labels = np.arange(N_COMPONENTS)[None]
    shape = (2, N_COMPONENTS, N_FEATURES)
    maps = Maps(row_of_labels, row_of_labels, np.arange(np.prod(shape)).reshape(shape))
    parts = [
        Statistics.of(
            Expectations(activations, np.log(activations), np.log(np.maximum(atoms, 1e-300))), maps
        )
        for atoms, activations in parameters
    ]
    return update_prior(Priors.of(1.0, 1.0, np.ones(shape)), Statistics.mean(parts), maps)


def learned_in_order(learner: PriorLearner) -> Priors:
    """The learned prior, components in the order of their activations' shapes, as in the truth."""
    parameters = {name: getattr(learner.estimator_, f"{name}_prior") for name in PARAMETERS}
    order = np.argsort(parameters["activation_shape"][0])
    return Priors.of(**{name: values[:, order] for name, values in parameters.items()})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=5, help="number of hyperparameters")
    parser.add_argument("--matrices", type=int, default=30)
    parser.add_argument("--samples", type=int, default=2000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    header = ["draw", "shapes of activations (5, 50)", "their means (300, 300)"]
    header += ["large shapes of atoms: learned − true", "seen − true", "learned − seen"]
    print("\n".join(table_head([*header, "small ones (0.02)", "rounds", "s"])), flush=True)
    for seed in range(options.draws):
        truth = STREAM.draw(seed)
        drawn = [truth.matrix(seed, n, options.samples) for n in range(options.matrices)]
        begin = time.perf_counter()
        learner = PriorLearner(neutral(seed)).fit([X for X, _, _ in drawn])
        seconds = time.perf_counter() - begin
        learned, seen = learned_in_order(learner), best_prior([part[1:] for part in drawn])
        large = truth.atom_shape > 0.1
        errors = sampling_errors(truth.atom_shape, options.matrices)
        logs = [np.log(part) for part in (learned.atoms.shape, seen.atoms.shape, truth.atom_shape)]
        differences = [
            np.abs((logs[one] - logs[other]) / errors)[large].max()
            for one, other in ((0, 2), (1, 2), (0, 1))
        ]
        small = learned.atoms.shape[~large]
        shapes, means = learned.activations.shape[0], learned.activations.mean[0]
        cells: list[object] = [seed, " ".join(f"{x:.2f}" for x in shapes)]
        cells.append(" ".join(f"{x:.0f}" for x in means))
        cells += [f"{difference:.2f}" for difference in differences]
        cells += [f"{small.min():.3f} to {small.max():.3f}", len(learner.lower_bounds_)]
        print(row([*cells, f"{seconds:.0f}"]), flush=True)


if __name__ == "__main__":
    main()
