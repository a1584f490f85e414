"""
Nonnegative components under noise
==================================

Spectra and their amounts are never negative, but noise makes a third of the measured values so.
NMF has to cut these off or to shift the data; a model with noise takes them as they are. The data
are simulated: 300 mixtures of four spectra, weak against the noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF

from seminmf import SkellamSNMF

rng = np.random.default_rng(2)
channel = np.arange(120)


def line(place, width, height=1.0):
    """A peak."""
    return height * np.exp(-(((channel - place) / width) ** 2) / 2)


spectra = np.array(
    [
        line(20, 4) + line(70, 6, 0.5),
        line(38, 8) + line(100, 4, 0.6),
        line(55, 5) + line(85, 10, 0.4),
        line(28, 3, 0.7) + line(78, 5) + line(108, 3, 0.5),
    ]
)
spectra /= spectra.sum(axis=1, keepdims=True)
amounts = rng.gamma(0.6, 1.0, size=(300, 4))
signal = amounts @ spectra
X = signal + 1.6 * signal.std() * rng.normal(size=signal.shape)
print(f"{np.mean(X < 0):.0%} of the values are negative")

# %%
# Three fits of four components: NMF on values cut off at 0, NMF on values shifted by their
# minimum, and ``positive_components=True``.

fits = {
    "NMF, cut off at 0": NMF(4, max_iter=1000, random_state=0).fit(np.maximum(X, 0)),
    "NMF, shifted": NMF(4, max_iter=1000, random_state=0).fit(X - X.min()),
    "SkellamSNMF": SkellamSNMF(4, positive_components=True, random_state=0).fit(X),
}

figure, axes = plt.subplots(
    3, 4, figsize=(9.5, 5.6), layout="constrained", sharex=True, sharey=True
)
for (name, model), panels in zip(fits.items(), axes, strict=True):
    found = model.components_ / model.components_.sum(axis=1, keepdims=True)
    lengths = np.linalg.norm(spectra, axis=1)[:, None] * np.linalg.norm(found, axis=1)
    cosines = spectra @ found.T / lengths
    _, order = linear_sum_assignment(-cosines)
    print(f"{name}: mean cosine {cosines[range(4), order].mean():.3f}")
    for k, panel in enumerate(panels):
        panel.fill_between(channel, spectra[k], color="0.85")
        panel.plot(channel, found[order[k]], color=f"C{k}", lw=1.3)
        panel.text(0.98, 0.9, f"{cosines[k, order[k]]:.3f}", ha="right", transform=panel.transAxes)
        panel.set_yticks([])
    panels[0].set_ylabel(name)
for panel in axes[-1]:
    panel.set_xlabel("channel")
axes[0, 0].set_title("true (grey), found (line), and their cosine")
plt.show()
