"""
Digits as sums of strokes
=========================

A handwritten digit is a common ground plus strokes that are added in amounts ≥ 0. The strokes
have signs: ink that is there (red) and ink that is missing (blue). The data are scikit-learn's
1797 digits of 8 × 8 pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from seminmf import SkellamSNMF

X, y = load_digits(return_X_y=True)

# %%
# Pixels that are hardly ever used, in the corners, are left out. The ground is found with the
# fit, by ``fit_intercept=True``: it is what a sample has whose amounts are all 0.

used = np.count_nonzero(X, axis=0) > 50
model = SkellamSNMF(n_components=16, fit_intercept=True, n_init=1, random_state=0).fit(X[:, used])
print(f"{used.sum()} of 64 pixels; explained around the intercept: {model.r2_:.2f}")

# %%
# Above, all strokes, the most used ones first. Below, three digits: the ground, then one stroke
# after the other, the largest amount of the sample first.


def square(values):
    """Values of the used pixels as an image, with 0 elsewhere."""
    image = np.zeros(64)
    image[used] = values
    return image.reshape(8, 8)


figure = plt.figure(figsize=(9.5, 6.6), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=(2, 3))
above.suptitle("strokes, in red what they add and in blue what they take away")
strokes = np.argsort(-model.amounts_.mean(axis=0))
for axes, k in zip(above.subplots(2, 8).flat, strokes, strict=True):
    stroke = square(model.components_[k])
    most = np.abs(stroke).max()
    axes.imshow(stroke, cmap="RdBu_r", vmin=-most, vmax=most)
below.suptitle("three digits: the ground, and 1 to 16 strokes")
numbers = [0, 1, 2, 3, 4, 6, 8, 16]
for line, digit in zip(below.subplots(3, 9), (0, 2, 6), strict=True):
    sample = np.flatnonzero(y == digit)[0]
    order = np.argsort(-model.amounts_[sample])
    for axes, number in zip(line, numbers, strict=False):
        few = np.zeros((1, 16))
        few[0, order[:number]] = model.activations_[sample, order[:number]]
        axes.imshow(square(model.inverse_transform(few)[0]), cmap="Greys", vmin=0, vmax=16)
        axes.set_xlabel(number or "ground", fontsize="small")
    line[-1].imshow(X[sample].reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
    line[-1].set_xlabel("the digit", fontsize="small")
for axes in [*above.axes, *below.axes]:
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
plt.show()
