"""
EEG-like trials: maps, courses and strengths at once
====================================================

Which sources are behind recordings of trials × channels × times? Each source has a map over the
channels, which has signs, a course over the time of a trial and a strength in each trial, which
have none. The recordings are simulated: three sources, noise as large as the signal, two bad
channels with four and eight times that noise, and a tenth of the cells missing. Next to it is what
one would do with scikit-learn: PCA and ICA of the mean trial, and NMF of what is above zero.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF, PCA, FastICA

from seminmf import SkellamSNTF

rng = np.random.default_rng(0)
n_trials, n_channels, n_sources = 60, 16, 3
ms = 10 * np.arange(80)
angle = 2 * np.pi * np.arange(n_channels) / n_channels  # electrodes around a head


def on_head(direction, centre, width):
    """Two poles that are close to one side of the head."""
    distance = np.abs((angle - centre + np.pi) % (2 * np.pi) - np.pi)
    return np.cos(angle - direction) * np.exp(-0.5 * (distance / width) ** 2)


maps = np.stack([on_head(0, 0.5, 1.2), on_head(2, 2.5, 1.0), on_head(4, 4.5, 1.5)], axis=1)
courses = np.exp(-0.5 * ((ms[:, None] - [150, 250, 430]) / [40, 60, 90]) ** 2)
strengths = rng.gamma(2, 0.5, size=(n_trials, n_sources))
signal = np.einsum("nr,cr,tr->nct", strengths, maps, courses)
bad = np.ones(n_channels)
bad[[5, 11]] = 8, 4
X = signal + signal.std() * bad[:, None] * rng.normal(size=signal.shape)
X[rng.random(X.shape) < 0.1] = np.nan

# %%
# The model is one string. Which channels are bad is found with the fit: each has its own noise.

model = SkellamSNTF("nr,cr,tr->nct", n_sources, signed="cr", random_state=0).fit(X)
print(f"noise of the worst channels: {np.argsort(-model.noise_)[:2]}, R² {model.r2_:.2f}")

# %%
# The usual ways know two axes. PCA and ICA take the mean over the trials, whose strengths are lost;
# NMF takes channels and trials as one axis, with what is below zero set to zero.

mean = np.nanmean(X, axis=0)
pca, ica = PCA(n_sources), FastICA(n_sources, random_state=0, max_iter=1000)
pca_courses, ica_courses = pca.fit_transform(mean.T), ica.fit_transform(mean.T)
clipped = np.maximum(np.where(np.isnan(X), mean, X), 0)
nmf = NMF(n_sources, init="nndsvda", max_iter=1000, random_state=0)
nmf_courses = nmf.fit_transform(clipped.transpose(2, 0, 1).reshape(len(ms), -1))
nmf_maps = nmf.components_.reshape(n_sources, n_trials, n_channels).mean(axis=1).T
found = {
    "SkellamSNTF": (model.factors_["cr"], model.factors_["tr"]),
    "PCA of the mean": (pca.components_.T, pca_courses),
    "ICA of the mean": (ica.mixing_, ica_courses),
    "NMF, clipped": (nmf_maps, nmf_courses),
}


def cosines(true, other):
    """Of all columns with each other."""
    return (true / np.linalg.norm(true, axis=0)).T @ (other / np.linalg.norm(other, axis=0))


def matched(own_maps, own_courses):
    """The sources in the order of the true ones, and the mean cosines of both."""
    both = cosines(maps, own_maps), cosines(courses, own_courses)
    rows, columns = linear_sum_assignment(-np.abs(both[0] * both[1]))
    return columns, [float(np.abs(one[rows, columns]).mean()) for one in both]


scores = {way: matched(*factors)[1] for way, factors in found.items()}
for way, (of_maps, of_courses) in scores.items():
    print(f"{way:16} cosine of maps {of_maps:.3f}, of courses {of_courses:.3f}")

# %%
# True maps and courses are grey. What PCA finds has to be orthogonal, ICA's courses independent,
# and NMF cannot have signs; sources of a tensor need nothing of the kind.

fig, axes = plt.subplots(2, n_sources, figsize=(9, 5), layout="constrained")
for way, (own_maps, own_courses) in found.items():
    order = matched(own_maps, own_courses)[0]
    style = {"lw": 2.2} if way == "SkellamSNTF" else {"lw": 0.9, "ls": "--"}
    for r, q in enumerate(order):
        for ax, own, true in ((axes[0, r], own_maps, maps), (axes[1, r], own_courses, courses)):
            scale = own[:, q] @ true[:, r] / (own[:, q] @ own[:, q])
            ax.plot(scale * own[:, q], label=way, **style)
for r in range(n_sources):
    axes[0, r].plot(maps[:, r], color="0.6", lw=5, alpha=0.6, zorder=0, label="truth")
    axes[1, r].plot(courses[:, r], color="0.6", lw=5, alpha=0.6, zorder=0)
    axes[0, r].set(title=f"source {r + 1}", xlabel="channel")
    axes[1, r].set(xlabel="time in a trial, ms", xticks=range(0, 80, 20))
    axes[1, r].set_xticklabels(ms[::20])
axes[0, 0].set_ylabel("map")
axes[1, 0].set_ylabel("course")
axes[0, 1].legend(fontsize="x-small")
plt.show()
