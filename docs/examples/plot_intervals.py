"""
How sure? Posterior intervals and the bootstrap
===============================================

An estimate says little without how far it may be off. ``BayesianSkellamSNMF`` draws from the
posterior; ``bootstrap`` refits the point estimate to data like those of the fit. The data are
simulated, so that one can count how many intervals of 90 % hold the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from seminmf import BayesianSkellamSNMF, SkellamSNMF, bootstrap

# %%
# Sixty samples, twenty features, two components, and noise as large as the signal in some features.

rng = np.random.default_rng(12)
amounts = rng.gamma(0.6, 2.0, size=(60, 2))
patterns = rng.normal(size=(2, 20)) * (rng.random((2, 20)) < 0.7)
patterns /= np.abs(patterns).sum(axis=1, keepdims=True)
noise = np.geomspace(0.05, 0.25, 20)
X = amounts @ patterns + noise * rng.normal(size=(60, 20))

posterior = BayesianSkellamSNMF(n_components=2, random_state=0).fit(X)
point = SkellamSNMF(n_components=2, random_state=0).fit(X)
intervals = {
    "posterior": (posterior, posterior.interval(level=0.9).components),
    "bootstrap": (point, bootstrap(point, X, n_draws=100, level=0.9, random_state=0).components),
}

# %%
# A component of the model has Σ abs(entries) of 1 or a little less; the true ones have 1. Orange
# intervals do not hold the truth, and one in ten should not.

figure, axes = plt.subplots(
    2, 2, figsize=(9.5, 5.6), layout="constrained", sharex=True, sharey="col"
)
for (name, (model, interval)), panels in zip(intervals.items(), axes, strict=True):
    _, order = linear_sum_assignment(-(patterns @ model.components_.T))
    held = []
    for k, panel in enumerate(panels):
        middle = model.components_[order[k]]
        lower, upper = interval.lower[order[k]], interval.upper[order[k]]
        holds = (lower <= patterns[k]) & (patterns[k] <= upper)
        held.append(holds)
        for inside, colour in ((True, "C0"), (False, "C1")):
            some = np.flatnonzero(holds == inside)
            panel.vlines(some, lower[some], upper[some], color=colour, lw=5, alpha=0.5)
            panel.plot(some, middle[some], "o", ms=4, color=colour)
        panel.plot(patterns[k], "_", ms=11, mew=1.6, color="black", label="truth")
        panel.axhline(0, color="0.85", lw=0.8, zorder=0)
        panel.set_xticks(range(0, 20, 5))
    panels[0].set_ylabel("component 0")
    panels[1].set_ylabel("component 1")
    panels[0].set_title(f"{name}: {np.mean(held):.0%} of the intervals of 90 % hold the truth")
    print(f"{name}: {np.sum(held)} of 40 intervals hold the truth")
axes[0, 1].legend()
for panel in axes[1]:
    panel.set_xlabel("feature, from little noise to much")
plt.show()
