"""
Gene expression: programs, their genes, and gaps
================================================

Which sets of genes go up and down together, how strongly is each set at work in each sample, and
how many sets are there? The table is simulated: log ratios of 150 samples and 120 genes, with five
programs of marker genes that are known, noise that differs between genes, and 15 % of the cells
missing.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from seminmf import SkellamSNMF, select_n_components

# %%
# Each program switches twelve genes up and six others down. Most samples run one or two programs,
# so activities are often near 0: that is what makes the programs identifiable.

rng = np.random.default_rng(3)
n_samples, n_genes, n_programs = 150, 120, 5
programs = np.zeros((n_programs, n_genes))
for program in programs:
    genes = rng.choice(n_genes, 18, replace=False)
    program[genes[:12]] = rng.uniform(0.7, 1.5, 12)
    program[genes[12:]] = -rng.uniform(0.7, 1.5, 6)
activity = rng.gamma(0.5, 2.0, size=(n_samples, n_programs))
noise = rng.uniform(0.3, 0.9, n_genes)
X = activity @ programs + noise * rng.normal(size=(n_samples, n_genes))
X[rng.random(X.shape) < 0.15] = np.nan

# %%
# The number of programs is chosen by cells that are hidden from the fit and predicted by it.

found = select_n_components(X, range(2, 8), criterion="heldout", n_folds=2, random_state=0)
print(found.verdict)

# %%
# The gaps stay gaps: nothing is filled in before the fit. Components are matched with the true
# programs, since they come in any order.

model = SkellamSNMF(found.best, random_state=0).fit(X)


def cosines(first, second):
    """Of all rows with all rows."""
    first, second = (w / np.linalg.norm(w, axis=1, keepdims=True) for w in (first, second))
    return first @ second.T


similarity = cosines(programs, model.components_)
rows, order = linear_sum_assignment(-similarity)
components = model.components_[order]
for k, component in enumerate(components):
    top = np.argsort(-np.abs(component))[:18]
    share = np.isin(top, np.flatnonzero(programs[k])).mean()
    print(f"program {k}: cosine {similarity[k, order[k]]:.3f}, {share:.0%} of its 18 genes found")

# %%
# Samples are sorted by their strongest program, genes by the component that they belong to.

samples = np.lexsort((-model.amounts_.max(axis=1), model.amounts_[:, order].argmax(axis=1)))
belongs = np.abs(components).argmax(axis=0)
genes = np.lexsort((-components[belongs, np.arange(n_genes)], belongs))

figure, axes = plt.subplots(1, 3, figsize=(10, 5), layout="constrained", width_ratios=(4, 3, 1.8))
colours = plt.get_cmap("RdBu_r").with_extremes(bad="0.8")
axes[0].imshow(X[np.ix_(samples, genes)], cmap=colours, vmin=-4, vmax=4, aspect="auto")
axes[0].set(title="log ratios (grey: gaps)", xlabel="gene", ylabel="sample")
axes[1].imshow(components[:, genes], cmap="RdBu_r", vmin=-0.08, vmax=0.08, aspect="auto")
axes[1].set(title="genes of each program", xlabel="gene", ylabel="component")
axes[1].set_yticks(range(len(components)))
table = found.table.set_index("n_components")
axes[2].errorbar(table.index, table["score"], table["standard_error"], marker="o", capsize=3)
axes[2].plot(found.best, table["score"][found.best], "o", ms=13, mfc="none", mec="C1", mew=2)
axes[2].set(title="how many?", xlabel="components", ylabel="log-likelihood of a hidden cell")
plt.show()
