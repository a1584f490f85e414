"""What keeps online learning from degenerating? Each remedy alone, and each left out.

The stream is that of ``seminmf reproduce online``, with fewer samples and matrices. Run it with
``python benchmarks/remedies.py``; it prints a Markdown table. The first part has posteriors of
variational Bayes, with the paper's rule and with remedies for it:

- *supervised*: the prior to start from is the one that suits the true parameters of ten matrices;
- *attenuated*: each run ends with ten iterations with a neutral prior, and is learned from then.

The second has what `PriorLearner` does, and leaves one part of it out at a time.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
from collection import best_prior
from joblib import Parallel, delayed
from numpy.typing import NDArray
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, PriorLearner
from seminmf._prior_learning import laplace, stream
from seminmf._prior_learning.atom_history import AtomHistory
from seminmf._prior_learning.posteriors import as_parameters
from seminmf.experiments._scenarios import Truth
from seminmf.experiments.online import (
    REFERENCE,
    STREAM,
    counts,
    neutral,
    shape_error,
    source_errors,
)

# Iterations of a run where nothing comes after variational Bayes.
LONG = {"max_iter": 400, "tol": 1e-5}
N_SUPERVISED, N_ATTENUATED = 10, 10


class Attenuated(BayesianSkellamSNMF):
    """An estimator whose last iterations have a neutral prior."""

    def fit(self, X, y=None, **start):
        """Fit, and go on with the neutral prior."""
        super().fit(X, **start)
        own = self.get_params()
        shapes = {"atom_shape": self.atom_shape_, "activation_shape": self.activation_shape_}
        flat = {"activation_shape_prior": 1.0, "activation_rate_prior": 1e-3}
        self.set_params(atom_shape_prior=1.0, **flat, max_iter=N_ATTENUATED, init="random")
        super().fit(X, **shapes)
        return self.set_params(**own)


def supervised(truth: Truth, seed: int, n_samples: int) -> dict[str, NDArray]:
    """The prior that suits the true parameters of some matrices that are not in the stream."""
    drawn = [truth.matrix(seed, 90000 + n, n_samples)[1:] for n in range(N_SUPERVISED)]
    return as_parameters(best_prior(drawn))


@contextmanager
def without(part: str | None) -> Iterator[None]:
    """The learner without one of its parts."""
    patches = {
        None: mock.MagicMock(),
        "records": mock.patch.object(AtomHistory, "following", lambda record: _fixed(record)),
        "volume": mock.patch.object(
            laplace, "_volume_slope", lambda task, here, by_atoms: np.zeros(len(by_atoms))
        ),
        "doubt": mock.patch.object(stream, "_TRUSTED_AFTER", 10**9),
    }
    with patches[part]:
        yield


def _fixed(record):
    """A record that does not follow the prior, as the paper has it."""
    parts = (part[None].astype(np.float64) for part in record)
    own = AtomHistory(np.zeros(record.log_best.shape), np.ones(1), *parts)
    return AtomHistory.fixed(own.log_atoms(record.best_for))


# Name → (rate, posterior, hyperprior, kind of start, part that is left out).
VARIANTS = {
    "paper: mean field, c = 0.02": (0.02, "mean-field", 0.0, None, None),
    "mean field, harmonic": ("harmonic", "mean-field", 0.01, None, None),
    "mean field, annealed": ("annealed", "mean-field", 0.01, None, None),
    "mean field, annealed, supervised": ("annealed", "mean-field", 0.01, "supervised", None),
    "mean field, annealed, attenuated": ("annealed", "mean-field", 0.01, "attenuated", None),
    "correlated, annealed": ("annealed", "correlated", 0.01, None, None),
    "the same, c = 0.02": (0.02, "correlated", 0.01, None, None),
    "the same, harmonic": ("harmonic", "correlated", 0.01, None, None),
    "annealed without records": ("annealed", "correlated", 0.01, None, "records"),
    "annealed without volume": ("annealed", "correlated", 0.01, None, "volume"),
    "annealed without doubt": ("annealed", "correlated", 0.01, None, "doubt"),
}


def run(name: str, seed: int, options: argparse.Namespace) -> tuple[NDArray, float]:
    """Errors of the atoms' shapes as shares of the start's, and the ratio of mse_m."""
    warnings.simplefilter("ignore")
    rate, posterior, hyperprior, start, left_out = VARIANTS[name]
    truth = STREAM.draw(seed)
    estimator = neutral(seed)
    if posterior == "mean-field":
        estimator.set_params(**LONG)
    if start == "supervised":
        estimator.set_params(**supervised(truth, seed, options.samples))
    if start == "attenuated":
        estimator = Attenuated(**estimator.get_params())
    learner = PriorLearner(
        estimator, learning_rate=rate, posterior=posterior, hyperprior=hyperprior
    )
    errors, found, best = [], [], []
    with without(left_out):
        for number in range(options.matrices):
            X, atoms, activations = truth.matrix(seed, number, options.samples)
            learner.partial_fit(X)
            errors.append(shape_error(truth, learner.estimator_.atom_shape_prior))
            if number >= options.matrices - 50:
                reference = counts(**REFERENCE, **truth.parameters()).fit(X)
                found.append(source_errors(atoms, activations, learner.last_)[0])
                best.append(source_errors(atoms, activations, reference)[0])
    return np.array(errors) / shape_error(truth, np.ones(1)), np.mean(found) / np.mean(best)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 3, 12, 17])
    parser.add_argument("--matrices", type=int, default=200)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    times = [n for n in (25, 50, 100, 200, 400) if n <= options.matrices]
    print(f"Draws {options.draws}; {options.samples} samples.\n")
    header = ["learner", *(f"error after {n}" for n in times), "mse_m / that with the true prior"]
    print("\n".join(table_head(header)), flush=True)
    for name in VARIANTS:
        runs = Parallel(n_jobs=options.jobs)(
            delayed(run)(name, seed, options) for seed in options.draws
        )
        cells = [" ".join(f"{errors[n - 1]:.2f}" for errors, _ in runs) for n in times]
        print(row([name, *cells, " ".join(f"{ratio:.2f}" for _, ratio in runs)]), flush=True)


if __name__ == "__main__":
    main()
