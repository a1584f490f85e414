"""
Radar returns: components that are complex numbers
==================================================

Each sample is a radar return from the ionosphere: 17 pulses with a real and an imaginary part,
from the bundled data set ``load_ionosphere``. Nobody tells the fit that features come in pairs,
or that pulses have an order. Yet its components are paths that turn around zero, each at its own
speed.
"""

import matplotlib.pyplot as plt
import numpy as np

from seminmf import SkellamSNMF
from seminmf.datasets import load_ionosphere

X, y = load_ionosphere(return_X_y=True)
model = SkellamSNMF(n_components=4, random_state=0).fit(X)
print("starts that found the same:", model.n_same_starts_, "of 10")
print("explained:", round(model.r2_, 2))

# %%
# Real and imaginary parts alternate, so a row of 34 numbers is one of 17 complex numbers.

pulses = model.components_[:, 0::2] + 1j * model.components_[:, 1::2]
phase = np.unwrap(np.angle(pulses), axis=1) / np.pi
turns = phase[:, -1] - phase[:, 0]
order = np.argsort(turns)
print("half turns from the first pulse to the last:", turns[order].round(1))

# %%
# Left: the path of each component through the complex plane, from the first pulse (large dot) to
# the last. Right: how much of each component the returns have. The bad ones have less of
# everything.

figure, (plane, amounts) = plt.subplots(
    1, 2, figsize=(9.5, 4.8), layout="constrained", width_ratios=(1, 1.3)
)
for colour, k in enumerate(order):
    path = pulses[k]
    plane.plot(
        path.real, path.imag, "-o", ms=3, color=f"C{colour}", label=f"{turns[k]:+.1f} half turns"
    )
    plane.plot(path.real[0], path.imag[0], "o", ms=9, color=f"C{colour}")
plane.axhline(0, color="0.85", zorder=0)
plane.axvline(0, color="0.85", zorder=0)
plane.set(title="components", xlabel="real part", ylabel="imaginary part", aspect="equal")
plane.legend(loc="center", bbox_to_anchor=(0.47, 0.42))

shares = model.amounts_[:, order]
rows = np.lexsort((-shares.max(axis=1), shares.argmax(axis=1), y == "b"))
bottom = np.zeros(len(X))
for colour in range(4):
    values = shares[rows, colour]
    amounts.bar(range(len(X)), values, 1.0, bottom=bottom, color=f"C{colour}")
    bottom += values
n_good = int(np.sum(y == "g"))
amounts.axvline(n_good - 0.5, color="black", lw=1)
top = 1.05 * bottom.max()
amounts.text(n_good / 2, top, "good returns", ha="center")
amounts.text((n_good + len(X)) / 2, top, "bad returns", ha="center")
amounts.set(title="amounts", xlabel="sample", xlim=(0, len(X)), ylim=(0, 1.12 * bottom.max()))
plt.show()
