"""
Energy of a house: known and unknown devices, less the sun
==========================================================

What do the devices of a house take, if one meter has the sum of all, and the panels on the roof are
subtracted from it? The signatures of four devices are known, two are not, and the sun's is known to
be zero by night. The meter is simulated: ninety days of 96 quarter-hours, device k takes on day n a
gamma-distributed multiple of its signature, the sun gives a multiple of a cosine between 7:30 and
18:30, the meter has an error of 0.15 kW, and a twentieth of its values is missing.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment, nnls
from sklearn.decomposition import NMF

from seminmf import SkellamSNTF

rng = np.random.default_rng(0)
n_days = 90
hours = np.arange(96) / 4


def around(hour, width):
    """A bump around an hour of the day."""
    return np.exp(-0.5 * (((hours - hour + 12) % 24 - 12) / width) ** 2)


devices = ["heat pump", "car", "kitchen", "fridge", "lights", "laundry"]
signatures = np.array(
    [
        around(7, 0.7) + around(18.5, 1),
        around(2, 2),
        around(12.5, 0.6) + 0.6 * around(19, 0.8),
        np.sin(np.pi * hours) >= 0,
        around(20.5, 1.5) + 0.3 * around(7.5, 1),
        around(9.5, 1.2),
    ]
)
signatures /= signatures.mean(axis=1, keepdims=True)  # mean 1: amounts are mean kW of a day
amounts = rng.gamma([4, 1, 2, 20, 4, 0.7], [0.1, 0.5, 0.15, 0.01, 0.06, 0.5], size=(n_days, 6))
sun = np.maximum(np.cos((hours - 13) / 5.5 * np.pi / 2), 0) * (np.abs(hours - 13) < 5.5)
sun /= sun.mean()
clear = 0.9 * rng.beta(1.5, 1.2, size=n_days)
meter = amounts @ signatures - np.outer(clear, sun) + 0.15 * rng.normal(size=(n_days, 96))
meter[rng.random(meter.shape) < 0.05] = np.nan

# %%
# What is known is handed in as start values, and what of it stays as `frozen`: four rows of the
# signatures, and the nights of the sun.

night = sun == 0
known = {
    "kt": np.where(np.arange(6)[:, None] < 4, signatures, np.nan),
    "t": np.where(night, 0.0, np.nan),
}
model = SkellamSNTF("nk,kt - n,t -> nt", {"k": 6}, random_state=0)
model.fit(meter, factors=known, frozen={"kt": [0, 1, 2, 3], "t": night})
factors = model.factors_
generated = factors["n"] * factors["t"].mean()

# %%
# Without it one would solve for the known devices day by day by least squares ≥ 0, with gaps filled
# by the mean of the quarter-hour; or with the sun's curve as well, if it were known; or
# factorize what is above zero.

filled = np.where(np.isnan(meter), np.nanmean(meter, axis=0), meter)
alone = np.array([nnls(signatures[:4].T, day)[0] for day in filled])
with_sun = np.array([nnls(np.vstack([signatures[:4], -sun]).T, day)[0] for day in filled])
nmf = NMF(7, init="nndsvda", max_iter=2000, random_state=0)
nmf_amounts = nmf.fit_transform(np.maximum(filled, 0))
alike = np.corrcoef(signatures[:4], nmf.components_)[:4, 4:]
own = linear_sum_assignment(-alike)[1]
nothing = np.zeros((n_days, 1))
truth = np.column_stack([amounts[:, :4], clear])
ways = {
    "SkellamSNTF": np.column_stack([factors["nk"][:, :4], generated]),
    "least squares, known devices": np.hstack([alone, nothing]),
    "least squares, true sun as well": with_sun,
    "NMF, clipped": np.hstack([nmf_amounts[:, own] * nmf.components_[own].mean(axis=1), nothing]),
}
errors = {way: np.abs(x - truth).sum(axis=0) / truth.sum(axis=0) for way, x in ways.items()}
columns = [*devices[:4], "sun"]
print("error of a day's energy, relative to the mean")
for way, row in errors.items():
    print(f"{way:32}", *(f"{name} {error:.2f}" for name, error in zip(columns, row, strict=True)))

# %%
# One day: devices upwards, the sun downwards. The two unknown devices come out with curves of their
# own. A fridge that goes on and off all day is what others can imitate best, and so the least sure.

day = int(np.argmax(clear))
parts = factors["nk"][day][:, None] * factors["kt"]
truths = np.argsort(linear_sum_assignment(-np.corrcoef(signatures[4:], parts[4:])[:2, 2:])[1])
names = [*devices[:4], *(f"unknown: {devices[4 + q]}" for q in truths)]
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.stackplot(hours, parts, labels=names, alpha=0.85)
left.fill_between(hours, -factors["n"][day] * factors["t"], color="gold", label="sun")
left.plot(hours, meter[day], "k.", ms=3, label="meter")
left.set(xlabel="hour", ylabel="kW", title=f"day {day}, taken apart")
left.set_xticks(range(0, 25, 6))
left.set_ylim(top=5.8)
left.legend(fontsize="x-small", ncols=3, loc="upper left")
places = np.arange(len(columns))
for n, (way, row) in enumerate(errors.items()):
    right.bar(places + 0.2 * n - 0.3, row, width=0.2, label=way)
right.set_xticks(places, columns)
right.set(ylabel="error of a day's energy / mean", title="known devices, and the sun")
right.legend(fontsize="x-small")
plt.show()
