"""
Dask and sparse: the same cells, three containers
=================================================

Does it matter how data are handed in? The same cells, a few percent of a table of 4000 × 200,
come as an array with NaN, as a sparse matrix, whose empty cells are gaps, and as a Dask array in
chunks, which may be larger than memory or live on a cluster. The data are simulated.
"""

import time

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from seminmf import SkellamSNMF

rng = np.random.default_rng(0)
n_samples, n_features = 4000, 200
position = np.arange(n_features)
waves = np.array([np.sin(position / width) for width in (6, 11, 24)])
signal = rng.gamma(0.5, 2.0, size=(n_samples, 3)) @ waves
observed = rng.random(signal.shape) < 0.05
X = np.where(observed, signal + 0.5 * rng.normal(size=signal.shape), np.nan)

# %%
# A sparse matrix stores what is observed, and nothing else. A Dask array is chunked over samples.

rows, columns = np.nonzero(observed)
containers = {
    "array with NaN": X,
    "sparse matrix": sparse.csr_array((X[observed], (rows, columns)), shape=X.shape),
    "Dask array": da.from_array(X, chunks=(1000, n_features)),
}
megabytes = {
    "array with NaN": X.nbytes / 1e6,
    "sparse matrix": sum(
        part.nbytes
        for part in containers["sparse matrix"].__dict__.values()
        if isinstance(part, np.ndarray)
    )
    / 1e6,
    "Dask array": containers["Dask array"].blocks[0].nbytes / 1e6,
}

# %%
# The noise is the same in all cells, which is said to the fit: features have 200 cells each.

components, seconds = {}, {}
for name, container in containers.items():
    begin = time.perf_counter()
    model = SkellamSNMF(n_components=3, noise="same", n_init=1, random_state=0).fit(container)
    seconds[name] = time.perf_counter() - begin
    components[name] = model.components_
    print(f"{name}: objective {model.objective_:.4f}, explained {model.r2_:.3f}")

# %%
# The components of all three lie on each other. Only what has to be held in memory differs (of
# the Dask array: one chunk).

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.8), layout="constrained", width_ratios=(2, 1))
for (name, found), style in zip(components.items(), ("-", "--", ":"), strict=True):
    for k, component in enumerate(found):
        label = name if k == 0 else None
        width = {"-": 5, "--": 2.5, ":": 1.5}[style]
        colour = {"-": f"C{k}", "--": "black", ":": "white"}[style]
        alpha = 0.6 if style == "-" else 1
        axes[0].plot(component, style, color=colour, lw=width, alpha=alpha, label=label)
axes[0].set(
    title="components, one on the other", xlabel="feature", facecolor="0.93", ylim=(-0.009, 0.0108)
)
axes[0].legend(ncols=3)
axes[1].barh(list(megabytes), list(megabytes.values()), color=["C0", "0.3", "0.6"])
for place, size in enumerate(megabytes.values()):
    axes[1].text(size, place, f" {size:.1f}", va="center")
axes[1].set(title="held in memory", xlabel="MB", xlim=(0, 8))
axes[1].invert_yaxis()
plt.show()
