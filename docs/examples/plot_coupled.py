"""
Two tables of the same patients: one predicted from the other
=============================================================

Can a table be predicted for new patients of whom only another is known, while both have gaps? Of
569 patients (the breast cancer data of scikit-learn) one table has ten features of cell nuclei as
they are in the mean, another the same features of the worst nuclei. Both are standardised and
share the patients; two thirds of these have both tables, the others only the first. Cells are
hidden at random, so that the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from seminmf import BayesianSkellamSNTF

data = load_breast_cancer().data
data = (data - data.mean(axis=0)) / data.std(axis=0)
first, second = data[:, :10], data[:, 20:]

# %%
# One string for each table. The patients' factor is in both, so both decide on it, and for new
# patients it follows from whatever is known of them.

coupled = BayesianSkellamSNTF(
    {"mean": "nr,jr->nj", "worst": "nr,kr->nk"},
    4,
    signed=("jr", "kr"),
    noise="same",
    n_init=1,
    random_state=0,
)


def by_factors(X, Y, new):
    """The second table of new patients, by coupled factors."""
    return coupled.fit({"mean": X, "worst": Y}).impute({"mean": new})["worst"]


def by_imputing(imputer):
    """By one wide table, in which the second is missing for new patients."""

    def predict(X, Y, new):
        imputer.fit(np.hstack([X, Y]))
        nothing = np.full((len(new), Y.shape[1]), np.nan)
        return imputer.transform(np.hstack([new, nothing]))[:, X.shape[1] :]

    return predict


def by_regression(X, Y, new):
    """Means in the gaps, then a linear regression for each feature."""
    ridge = make_pipeline(SimpleImputer(), RidgeCV(np.logspace(-2, 3, 12)))
    return ridge.fit(X, SimpleImputer().fit_transform(Y)).predict(new)


ways = {
    "coupled factors": by_factors,
    "means, then ridge regression": by_regression,
    "nearest neighbours": by_imputing(KNNImputer(n_neighbors=10)),
    "chained regressions": by_imputing(IterativeImputer(max_iter=40, tol=0.05, random_state=0)),
}

# %%
# R² of the second table of new patients, in the mean of two draws.

shares, n_draws = (0.0, 0.2, 0.4, 0.6), 2
scores = {way: np.zeros(len(shares)) for way in ways}
for draw in range(n_draws):
    rng = np.random.default_rng(draw)
    for n, share in enumerate(shares):
        X, Y = (np.where(rng.random(t.shape) < share, np.nan, t) for t in (first, second))
        old = rng.random(len(X)) < 2 / 3
        truth, mean = second[~old], second[old].mean(axis=0)
        for way, predict in ways.items():
            errors = predict(X[old], Y[old], X[~old]) - truth
            scores[way][n] += (1 - (errors**2).sum() / ((truth - mean) ** 2).sum()) / n_draws
print(f"{'hidden cells':29}", *(f"{share:.0%}".rjust(6) for share in shares))
for way, row in scores.items():
    print(f"{way:29}", *(f"{score:6.2f}" for score in row))

# %%
# Where most cells are known, regression and neighbours predict better: they need not explain the
# first table. With many gaps factors are ahead, because they take what there is.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for way, row in scores.items():
    ax.plot(shares, row, "o-", label=way, lw=2.5 if way == "coupled factors" else 1.2)
ax.set(xlabel="share of cells that are hidden, in both tables", xticks=shares, ylim=(0, None))
ax.set_ylabel("R² of the second table\nof new patients")
ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
ax.legend(fontsize="small")
plt.show()
