"""
An image inpainted
==================

Two thirds of the pixels of a photograph are hidden. Small overlapping patches of it are samples
with gaps; semi-NMF learns from what is left of them which patterns the image is made of, and
fills the gaps. The photograph is scikit-learn's sample image of a temple, in grey and at half its
size.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.datasets import load_sample_image

from seminmf import SkellamSNMF

image = load_sample_image("china.jpg").mean(axis=2)
image = image[: 2 * 90, 70 : 70 + 2 * 150].reshape(90, 2, 150, 2).mean(axis=(1, 3))
rng = np.random.default_rng(0)
hidden = rng.random(image.shape) < 2 / 3
gappy = np.where(hidden, np.nan, image)

# %%
# Patches of 8 × 8 pixels, a step of two apart. The mean of what is seen of a patch is taken
# away, and added again at the end, so that components are patterns of light and shade.

size, step = 8, 2
windows = sliding_window_view(gappy, (size, size))[::step, ::step]
patches = windows.reshape(-1, size * size)
means = np.nanmean(patches, axis=1, keepdims=True)
model = SkellamSNMF(n_components=18, n_init=1, random_state=0).fit(patches - means)
filled = model.impute(patches - means) + means

# %%
# Each pixel is the mean of what all patches say that hold it.

sums, counts = np.zeros(image.shape), np.zeros(image.shape)
places = np.ndindex(windows.shape[:2])
for (row, column), patch in zip(places, filled, strict=True):
    cells = np.s_[step * row : step * row + size, step * column : step * column + size]
    sums[cells] += patch.reshape(size, size)
    counts[cells] += 1
restored = np.clip(np.where(hidden, sums / counts, image), 0, 255)
error = np.sqrt(np.mean((restored - image)[hidden] ** 2))
spread = np.std(image[hidden])
print(f"error of a hidden pixel: {error:.1f} grey levels; standard deviation {spread:.1f}")

figure, axes = plt.subplots(2, 2, figsize=(9.5, 6.2), layout="constrained")
pictures = {
    "what is seen: one pixel of three": gappy,
    f"filled: error {error:.0f} of 255 grey levels": restored,
    "the photograph": image,
}
for panel, (title, pixels) in zip(axes.flat, pictures.items(), strict=False):
    colours = plt.get_cmap("gray").with_extremes(bad="C1")
    panel.imshow(pixels, cmap=colours, vmin=0, vmax=255)
    panel.set(title=title, xticks=[], yticks=[])
order = np.argsort(-model.amounts_.mean(axis=0))
tiles = model.components_[order].reshape(3, 6, size, size)
tiles = tiles / np.abs(tiles).max(axis=(2, 3), keepdims=True)
tiles = np.pad(tiles, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=np.nan)
panel = axes[1, 1]
panel.imshow(np.hstack(np.hstack(tiles)), cmap="gray")
panel.set(title="the components", xticks=[], yticks=[])
panel.spines[:].set_visible(False)
plt.show()
