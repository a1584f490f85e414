"""
A football season: matches to come as gaps
==========================================

Goal differences of a season are a matrix, home team × away team, and matches that are still to
come are gaps. They are differences of counts, so the integer likelihood is the right one. The
season is simulated: 18 teams of known strength, 11 of 34 rounds still to play.
(``seminmf.datasets.load_bundesliga`` reads real seasons from a file of yours.)
"""

import matplotlib.pyplot as plt
import numpy as np

from seminmf import BayesianSkellamSNMF

# %%
# Goals are Poisson numbers. Their rates are products of the strength of one attack and the
# weakness of the other defence; home teams score more.

rng = np.random.default_rng(7)
n_teams = 18
quality = np.sort(rng.normal(scale=0.28, size=n_teams))[::-1]
home_rate = 1.9 * np.exp(quality[:, None] - quality)
away_rate = 1.2 * np.exp(quality - quality[:, None])
goals = rng.poisson(home_rate) - rng.poisson(away_rate)
itself = np.eye(n_teams, dtype=bool)
to_come = rng.random(goals.shape) < 1 / 3
X = np.where(itself | to_come, np.nan, goals)

# %%
# Two components: goals of the home team (mostly positive) and of the guests (mostly negative).
# The prior says so, and that teams do not differ without end.

atoms = np.full((2, 2, n_teams), 0.05)
atoms[0, 0] = atoms[1, 1] = 10
shape = np.array([20.0, 20.0])
model = BayesianSkellamSNMF(
    n_components=2,
    likelihood="integer",
    atom_shape_prior=atoms,
    activation_shape_prior=shape,
    activation_rate_prior=shape / (np.array([1.9, 1.2]) * n_teams),
    posterior="mean-field",
    init="prior",
    random_state=0,
).fit(X)

# %%
# What is expected of the matches to come, against what will happen: nobody knows football results
# well, since goals are few.

expected = model.activations_ @ model.components_
coming = to_come & ~itself
decided = coming & (goals != 0)
right = np.mean(np.sign(expected[decided]) == np.sign(goals[decided]))
home = np.mean(goals[decided] > 0)
best = np.mean(np.sign(home_rate - away_rate)[decided] == np.sign(goals[decided]))
print(f"winners of decided matches to come: {right:.0%} right; always home {home:.0%};")
print(f"with the true strengths, which nobody knows: {best:.0%}")

found = expected.mean(axis=1) - expected.mean(axis=0)
order = np.argsort(-found)
names = np.array([chr(65 + n) for n in range(n_teams)])
figure, axes = plt.subplots(
    1, 3, figsize=(11.5, 4.4), layout="constrained", width_ratios=(3, 3, 2), sharey=False
)
colours = plt.get_cmap("RdBu_r").with_extremes(bad="0.85")
shown = np.where(itself, np.nan, expected)
for panel, values, title in zip(
    axes, (X, shown), ("played (grey: to come)", "expected"), strict=False
):
    panel.imshow(values[np.ix_(order, order)], cmap=colours, vmin=-4, vmax=4)
    panel.set_xticks(range(n_teams), names[order])
    panel.set_yticks(range(n_teams), names[order])
    panel.set(title=f"goal differences, {title}", xlabel="away team")
axes[0].set_ylabel("home team")
true = (home_rate - away_rate).mean(axis=1) - (home_rate - away_rate).mean(axis=0)
axes[2].barh(range(n_teams), found[order], color="C0", alpha=0.8, label="found")
axes[2].plot(true[order], range(n_teams), "o", color="C1", label="true")
axes[2].set_yticks(range(n_teams), names[order])
axes[2].invert_yaxis()
axes[2].set(title="strength", xlabel="goals ahead, home and away")
axes[2].legend(loc="lower right")
plt.show()
