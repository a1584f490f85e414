"""
A pipeline with gaps: scale, factorize, classify
================================================

Does a classifier suffer if cells are missing? In a pipeline of scikit-learn, ``SkellamSNMF``
takes samples with gaps and hands on its activations, so nothing has to be imputed before. It is
compared with imputing and PCA, on scikit-learn's wine data, standardised, with up to 60 % of the
cells hidden.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seminmf import SkellamSNMF

X, y = load_wine(return_X_y=True)
rng = np.random.default_rng(0)
chance = rng.random(X.shape)

# %%
# ``StandardScaler`` leaves NaN alone, and so scaling comes first. The components of each fold are
# learned from its training samples only.

pipelines = {
    "SkellamSNMF": make_pipeline(
        StandardScaler(),
        SkellamSNMF(n_components=3, n_init=1, random_state=0),
        LogisticRegression(max_iter=1000),
    ),
    "means, PCA": make_pipeline(
        StandardScaler(), SimpleImputer(), PCA(3), LogisticRegression(max_iter=1000)
    ),
    "KNNImputer, PCA": make_pipeline(
        StandardScaler(), KNNImputer(), PCA(3), LogisticRegression(max_iter=1000)
    ),
}

shares = [0.0, 0.2, 0.4, 0.6]
folds = StratifiedKFold(5, shuffle=True, random_state=0)
accuracy = {name: [] for name in pipelines}
for share in shares:
    gappy = np.where(chance < share, np.nan, X)
    for name, pipeline in pipelines.items():
        accuracy[name].append(cross_val_score(pipeline, gappy, y, cv=folds).mean())
for name, values in accuracy.items():
    print(f"{name}: " + ", ".join(f"{value:.3f}" for value in values))

figure, axes = plt.subplots(1, 1, figsize=(7, 4.2), layout="constrained")
for (name, values), marker in zip(accuracy.items(), "os^", strict=True):
    axes.plot(100 * np.array(shares), 100 * np.array(values), marker=marker, ms=8, label=name)
axes.set(
    title="three kinds of wine, told apart with gaps",
    xlabel="cells hidden, %",
    ylabel="accuracy in cross-validation, %",
)
axes.grid(axis="y")
axes.legend()
plt.show()
