"""
Source apportionment with known errors
======================================

Which sources does the dust in the air come from, if the laboratory reports an error for every
value? The receptor data are simulated: 12 species on 200 days from four sources, errors of 10 %
plus a detection limit, a tenth of the values missing, and days when a spare instrument was used,
with ten times the error.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from seminmf import SkellamSNMF

# %%
# Profiles are shares of the species in what a source emits. Wood smoke comes in winter, salt with
# westerly storms, traffic on working days.

species = ["OC", "EC", "NO3", "SO4", "NH4", "Na", "Cl", "K", "Ca", "Fe", "Cu", "Zn"]
sources = ["traffic", "wood smoke", "sea salt", "soil"]
profiles = np.array(
    [
        [34, 40, 8, 2, 2, 0, 0, 0, 2, 7, 3, 2],
        [66, 14, 4, 2, 2, 0, 2, 9, 0, 0, 0, 1],
        [1, 0, 4, 9, 0, 33, 50, 1, 2, 0, 0, 0],
        [12, 1, 2, 4, 1, 1, 0, 4, 42, 32, 0, 1],
    ]
)
profiles = profiles / profiles.sum(axis=1, keepdims=True)
rng = np.random.default_rng(0)
day = np.arange(200)
season = 0.5 + 0.5 * np.cos(2 * np.pi * day / 200)
strength = np.array([6 - 4 * (day % 7 > 4), 8 * season, 2 + 0 * day, 5 * (1 - season)]).T
amounts = strength * rng.gamma([2.0, 1.5, 0.4, 1.0], 1 / np.array([2.0, 1.5, 0.4, 1.0]), (200, 4))
true = amounts @ profiles
errors = np.sqrt((0.1 * true) ** 2 + 0.03**2)
errors[rng.random(200) < 0.2] *= 10
X = true + errors * rng.normal(size=true.shape)
X[rng.random(X.shape) < 0.1] = np.nan

# %%
# The errors go in as ``cell_noise``, and profiles are ≥ 0. Values below zero stay as they are:
# noise around a small value is nothing to be cut off. The same without errors, for comparison.

knows = SkellamSNMF(4, positive_components=True, random_state=0).fit(X, cell_noise=errors)
does_not = SkellamSNMF(4, positive_components=True, random_state=0).fit(X)


def matched(model):
    """Profiles and amounts in the order of the true ones, and the cosines of the profiles."""
    first, second = (
        w / np.linalg.norm(w, axis=1, keepdims=True) for w in (profiles, model.components_)
    )
    rows, order = linear_sum_assignment(-(first @ second.T))
    shares = model.components_[order] / model.components_[order].sum(axis=1, keepdims=True)
    return shares, model.amounts_[:, order], (first @ second.T)[rows, order]


found, found_amounts, cosines = matched(knows)
print("cosines with the true profiles, errors known:  ", cosines.round(3))
print("cosines with the true profiles, errors unknown:", matched(does_not)[2].round(3))

# %%
# Q, the sum of squared residuals over squared errors, should be near the number of values less that
# of the parameters that were fitted to them.

Q = np.nansum(((X - knows.inverse_transform(knows.activations_)) / errors) ** 2)
expected = np.sum(~np.isnan(X)) - knows.activations_.size - knows.components_.size
print(f"Q / expected: {Q / expected:.2f}")

figure = plt.figure(figsize=(9.5, 5.8), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.2))
for k, axes in enumerate(left.subplots(4, 1, sharex=True)):
    axes.bar(np.arange(12) - 0.2, profiles[k], 0.4, color="0.75", label="true")
    axes.bar(np.arange(12) + 0.2, found[k], 0.4, color=f"C{k}", label="found")
    axes.set_title(sources[k])
axes.set_xticks(range(12), species)
left.axes[0].legend(ncols=2, loc="upper right")
for axes, values, name in zip(
    right.subplots(2, 1, sharex=True, sharey=True),
    (amounts, found_amounts),
    ("true", "found"),
    strict=True,
):
    axes.stackplot(day, values.T, labels=sources)
    axes.set(title=f"amounts, {name}", ylabel="µg / m³", xlim=(0, 199))
axes.set_xlabel("day")
axes.legend(ncols=4, loc="upper center")
plt.show()
