"""What does it cost to learn a prior? Parts of one step of a stream, in milliseconds.

The stream is that of ``seminmf reproduce online``. Run it with ``python benchmarks/prior_cost.py``.
The parts are a run of variational Bayes (VBEM) until it converges, as the paper has it; the start
that the learner takes instead, a few iterations; the posterior with correlations; and the update of
the prior, with 300 matrices in the history.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from tables import row, table_head

from seminmf import PriorLearner
from seminmf._prior_learning.learned import learn_from
from seminmf._prior_learning.posteriors import correlated, variational
from seminmf.experiments.online import STREAM, counts, neutral

N_SAMPLES, N_BEFORE, REPEATS = 5000, 12, 7


def milliseconds(work) -> float:
    """The shortest of some runs."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    truth = STREAM.draw(0)
    learner = PriorLearner(neutral(0), learning_rate="annealed")
    for number in range(N_BEFORE):
        learner.partial_fit(truth.matrix(0, number, N_SAMPLES)[0])
    X = truth.matrix(0, N_BEFORE, N_SAMPLES)[0]
    learned, plan = learner._learned, learner._plan(*X.shape)
    history = learned.statistics.atoms
    many = history.joined(*[history] * (300 // N_BEFORE))
    learned = learned._replace(statistics=learned.statistics._replace(atoms=many.times(1 / 26)))
    start = variational(learner.estimator, X, learned.prior)
    posterior = correlated(X, start, learned.prior, plan.known, learned.potential)
    converged = counts(init="prior", max_iter=3000).set_params(
        **{name: learner.estimator_.get_params()[name] for name in truth.parameters()}
    )
    parts = {
        "VBEM until it converges": lambda: converged.fit(X),
        "start: 20 iterations": lambda: variational(learner.estimator, X, learned.prior),
        "posterior with correlations": lambda: correlated(
            X, start, learned.prior, plan.known, learned.potential
        ),
        "update of the prior": lambda: learn_from(
            learned, posterior, plan, (0.01, 0.01), learned.potential
        ),
    }
    times = {name: milliseconds(work) for name, work in parts.items()}
    alone, start_time, posterior_time, _ = times.values()
    fit_before = start_time + posterior_time
    print("\n".join(table_head(["part", "ms", "share of VBEM", "share of the learner's fit"])))
    for name, each in times.items():
        print(row([name, f"{each:.1f}", f"{each / alone:.2%}", f"{each / fit_before:.2%}"]))
    print(f"\nVBEM: {converged.n_iter_} iterations. Records: {len(many.weights)}.")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
