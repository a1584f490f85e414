"""
Digits: what to add to the mean digit
=====================================

A handwritten digit is the mean of all digits plus strokes that are added in amounts ≥ 0. The
strokes have signs: ink that is there (red) and ink that is missing (blue). The data are
scikit-learn's 1797 digits of 8 × 8 pixels.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from seminmf import SkellamSNMF

X, y = load_digits(return_X_y=True)

# %%
# The mean need not be taken away before: ``fit_intercept=True`` finds what a sample has whose
# amounts are all 0.

model = SkellamSNMF(n_components=24, fit_intercept=True, n_init=1, random_state=0).fit(X)
print(f"explained of the variance around the intercept: {model.r2_:.2f}")

# %%
# Above, all 24 strokes, the most used ones first. Below, three digits as sums: the intercept,
# then one stroke after the other, the largest amount of the sample first.

strokes = np.argsort(-model.amounts_.mean(axis=0))
chosen = [np.flatnonzero(y == digit)[0] for digit in (0, 2, 6)]
figure = plt.figure(figsize=(9.5, 6.6), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=(2, 3))
above.suptitle("24 strokes, in red what they add and in blue what they take away")
for axes, k in zip(above.subplots(2, 12).ravel(), strokes, strict=True):
    most = np.abs(model.components_[k]).max()
    axes.imshow(model.components_[k].reshape(8, 8), cmap="RdBu_r", vmin=-most, vmax=most)
    axes.set(xticks=[], yticks=[])
below.suptitle("three digits: the intercept, and 1 to 8 strokes and all")
numbers = (0, 1, 2, 3, 4, 6, 8, 24)
for line, sample in zip(below.subplots(3, 9), chosen, strict=True):
    order = np.argsort(-model.amounts_[sample])
    for axes, number in zip(line, numbers, strict=False):
        used = order[:number]
        image = model.intercept_ + model.activations_[sample, used] @ model.components_[used]
        axes.imshow(image.reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
        axes.set_xlabel(f"{number}" if number else "intercept", fontsize="small")
    line[-1].imshow(X[sample].reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
    line[-1].set_xlabel("true", fontsize="small")
    for axes in line:
        axes.set(xticks=[], yticks=[])
plt.show()
