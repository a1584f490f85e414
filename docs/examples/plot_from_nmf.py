"""
Coming from scikit-learn's NMF
==============================

The call is the same, the data may have signs. What becomes of patterns with signs if the data are
shifted until NMF takes them? The data are simulated: sums of four signed waves in amounts ≥ 0,
with noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import NMF

from seminmf import SkellamSNMF

rng = np.random.default_rng(0)
time = np.linspace(0, 1, 100)
waves = np.array(
    [
        np.sin(2 * np.pi * time),
        np.sign(np.sin(4 * np.pi * time + 0.8)),
        np.exp(-(((time - 0.3) / 0.06) ** 2)) - np.exp(-(((time - 0.65) / 0.09) ** 2)),
        2 * ((3 * time + 0.5) % 1) - 1,
    ]
)
X = rng.gamma(0.5, 1.0, size=(400, 4)) @ waves + 0.4 * rng.normal(size=(400, 100))

# %%
# What NMF needs in front, ``SkellamSNMF`` does not. ``W`` and ``H`` of NMF are activations and
# ``components_`` here, too.

nmf = NMF(n_components=4, max_iter=2000, random_state=0)
W = nmf.fit_transform(X - X.min())

snmf = SkellamSNMF(n_components=4, random_state=0)
A = snmf.fit_transform(X)
print(
    "activations:", W.shape, A.shape, "components:", nmf.components_.shape, snmf.components_.shape
)

# %%
# Waves that were found are scaled to the size of the true ones, those of NMF without their mean.

found = {
    "NMF of X − min(X)": nmf.components_ - nmf.components_.mean(axis=1, keepdims=True),
    "SkellamSNMF of X": snmf.components_,
}
figure, axes = plt.subplots(2, 4, figsize=(9.5, 5), layout="constrained", sharex=True, sharey=True)
for (name, components), panels in zip(found.items(), axes, strict=True):
    lengths = np.linalg.norm(waves, axis=1)[:, None] * np.linalg.norm(components, axis=1)
    cosines = waves @ components.T / lengths
    _, order = linear_sum_assignment(-cosines)
    print(f"{name}: cosines {cosines[range(4), order].round(3)}")
    for k, panel in enumerate(panels):
        component = components[order[k]]
        scaled = component * np.linalg.norm(waves[k]) / np.linalg.norm(component)
        panel.plot(time, waves[k], color="0.8", lw=5)
        panel.plot(time, scaled, color=f"C{k}", lw=1.5)
        panel.set_title(f"cosine {cosines[k, order[k]]:.3f}", loc="right", fontweight="normal")
        panel.set(xticks=[], yticks=[])
    panels[0].set_ylabel(name)
plt.show()
