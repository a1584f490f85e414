"""
A prior that is learned over a stream
=====================================

Tables of the same kind arrive one after the other, from one patient or one month each.
``PriorLearner`` learns from them what activations and components are like, so that a new table of
very few samples can be fitted better. The tables are drawn from a prior: one can see whether it
is found.
"""

import matplotlib.pyplot as plt
import numpy as np

from seminmf import BayesianSkellamSNMF, PriorLearner, sample_skellam_snmf

# %%
# Two components with signs, which differ a little from table to table. The data are counts, so the
# likelihood is that of integers.

typical = np.array(
    [[[8, 1, 1, 6, 1, 1], [1, 1, 9, 1, 1, 1]], [[1, 5, 1, 1, 1, 8], [6, 1, 1, 1, 7, 1]]],
    dtype=float,
)
truth = {"activation_shape": [1.2, 0.7], "activation_rate": [0.06, 0.04]}


def table(n_samples, number):
    """A table, and its true components."""
    X, atoms, _ = sample_skellam_snmf(
        n_samples, 6, 2, atom_shape=typical, **truth, random_state=number
    )
    return X, atoms[0] - atoms[1]


flat = BayesianSkellamSNMF(
    n_components=2,
    likelihood="integer",
    activation_shape_prior=1.0,
    activation_rate_prior=0.05,
    atom_shape_prior=1.0,
    posterior="mean-field",
    random_state=0,
)


def error(estimator, X, true):
    """Root mean square error of the components, in the better order of the two."""
    found = estimator.fit(X).components_
    return min(np.sqrt(np.mean((found[order] - true) ** 2)) for order in ([0, 1], [1, 0]))


# %%
# The stream has 32 tables of sixty samples. On the way, forty other tables of only five samples are
# fitted with the prior that was learned so far.

learner = PriorLearner(flat, learning_rate="annealed")
small = [table(5, 1000 + number) for number in range(40)]
means, errors = [], {0: np.mean([error(flat, *each) for each in small])}
for number in range(1, 33):
    learner.partial_fit(table(60, number)[0])
    shapes = learner.estimator_.atom_shape_prior
    means.append((shapes[0] - shapes[1]) / shapes.sum(axis=(0, 2))[:, None])
    if number in (1, 2, 4, 8, 16, 32):
        errors[number] = np.mean([error(learner.estimator_, *each) for each in small])
true_prior = {f"{name}_prior": value for name, value in truth.items()}
knows = BayesianSkellamSNMF(**{**flat.get_params(), **true_prior, "atom_shape_prior": typical})
best = np.mean([error(knows, *each) for each in small])
print("mean error in a table of five samples, by the number of tables learned from:")
print(
    {number: round(float(value), 3) for number, value in errors.items()}, f"true prior: {best:.3f}"
)

# %%
# Left: the mean components of the prior, entry by entry, on their way to the true ones (dashed).
# Right: what that does for tables of five samples.

means = np.array(means)
expected = (typical[0] - typical[1]) / typical.sum(axis=(0, 2))[:, None]
order = min([[0, 1], [1, 0]], key=lambda order: np.sum((means[-1][order] - expected) ** 2))
figure, axes = plt.subplots(1, 3, figsize=(10, 5), layout="constrained")
for k, panel in enumerate(axes[:2]):
    for entry in range(6):
        panel.plot(range(1, 33), means[:, order[k], entry], color=f"C{entry}", lw=1.8)
        panel.axhline(expected[k, entry], color=f"C{entry}", ls="--", lw=1)
    panel.set(title=f"prior mean, component {k}", xlabel="tables so far", ylim=(-0.55, 0.55))
axes[2].plot(list(errors), list(errors.values()), "-o", color="C1", label="learned prior")
axes[2].axhline(best, color="0.4", ls="--", lw=1, label="true prior")
axes[2].set_xscale("symlog", linthresh=1)
axes[2].set_xticks(list(errors), list(errors))
axes[2].minorticks_off()
axes[2].set(title="error in tables of five samples", xlabel="tables so far", ylim=(0, None))
axes[2].legend()
plt.show()
