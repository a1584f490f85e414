"""
Stock returns: what is each fund made of?
=========================================

A fund that may not sell short holds sectors in amounts ≥ 0, while the returns of the sectors have
both signs: a semi-nonnegative factorization by nature. The returns are simulated: 80 funds over
250 days, four sectors with volatile and quiet times, and young funds whose first months are
missing.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from seminmf import SkellamSNMF

# %%
# A sample is a fund and a feature is a day, so a component is the return of a sector, day by day,
# and an activation is how much of it a fund holds. Volatility changes slowly, as it does on
# markets.

rng = np.random.default_rng(1)
n_funds, n_days = 80, 250
sectors = ["energy", "finance", "health", "technology"]
volatility = np.exp(0.6 * np.cumsum(rng.normal(size=(4, n_days)), axis=1) / np.sqrt(n_days))
returns = volatility * rng.normal(0.05, 1.0, size=(4, n_days))
holdings = rng.dirichlet(np.full(4, 0.4), size=n_funds)
X = holdings @ returns + 0.3 * rng.normal(size=(n_funds, n_days))
first_day = np.where(rng.random(n_funds) < 0.3, rng.integers(20, 150, n_funds), 0)
X[np.arange(n_days) < first_day[:, None]] = np.nan
print(f"{np.isnan(X).mean():.0%} of the cells are missing")

# %%
# The fit knows neither the sectors nor their returns, only that there are four.

model = SkellamSNMF(n_components=4, random_state=0).fit(X)
correlation = np.corrcoef(returns, model.components_)[:4, 4:]
_, order = linear_sum_assignment(-correlation)
found = model.amounts_[:, order]
found = found / found.sum(axis=1, keepdims=True)
error = np.abs(found - holdings).mean()
print("correlation of daily returns:", correlation[range(4), order].round(3))
print(f"mean error of a holding: {100 * error:.1f} percentage points")

# %%
# On the left the holdings, funds sorted by the sector that they hold most of; on the right the
# returns of the sectors, summed over the year and scaled to the size of the true ones.

funds = np.lexsort((-holdings.max(axis=1), holdings.argmax(axis=1)))
figure = plt.figure(figsize=(9.5, 5.2), layout="constrained")
left, right = figure.subfigures(1, 2)
for axes, shares, name in zip(
    left.subplots(2, 1, sharex=True), (holdings, found), ("true", "found"), strict=True
):
    axes.stackplot(range(n_funds), shares[funds].T, labels=sectors, step="mid")
    axes.set(title=f"holdings, {name}", xlim=(0, n_funds - 1), ylim=(0, 1), ylabel="share")
axes.set_xlabel("fund")
axes = right.subplots()
for k, sector in enumerate(sectors):
    component = model.components_[order[k]]
    scale = np.linalg.norm(returns[k]) / np.linalg.norm(component)
    axes.plot(np.cumsum(returns[k]), color=f"C{k}", alpha=0.35, lw=5)
    axes.plot(np.cumsum(scale * component), color=f"C{k}", lw=1.5, label=sector)
axes.set(title="sectors: true (broad), found (thin)", xlabel="day", ylabel="sum of returns, %")
axes.legend(loc="upper left")
plt.show()
