"""
Sound: who speaks when?
=======================

Autocorrelations of independent voices add up, have both signs, and grow with the power of each
voice, which is never negative. So a table of short frames × lags takes a recording apart into its
voices. The recording is simulated: three vowel-like voices with vibrato that come and go, overlap,
and are heard through noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.signal import lfilter

from seminmf import SkellamSNMF

# %%
# A voice is a train of pulses at its pitch, sent through two resonances (formants).

rng = np.random.default_rng(5)
rate, seconds = 8000, 15
time = np.arange(rate * seconds) / rate


def voice(pitch, formants):
    """A vowel of power 1, with a little vibrato."""
    phase = np.cumsum(pitch * (1 + 0.004 * np.sin(2 * np.pi * 5 * time))) / rate
    sound = (np.diff(np.floor(phase), prepend=0) > 0).astype(float)
    for formant in formants:
        radius = np.exp(-np.pi * 90 / rate)
        sound = lfilter(
            [1], [1, -2 * radius * np.cos(2 * np.pi * formant / rate), radius**2], sound
        )
    return sound / sound.std()


voices = np.array([voice(105, (700, 1200)), voice(165, (300, 2300)), voice(235, (450, 900))])
knots = np.arange(0, seconds + 1, 0.75)
loudness = np.array(
    [np.interp(time, knots, rng.choice([0, 0, 0.5, 1.0], len(knots))) for _ in voices]
)
recording = (loudness * voices).sum(axis=0) + 0.3 * rng.normal(size=len(time))

# %%
# A frame is 64 ms long. Its autocorrelation at lag 0 is its power; the others tell voices apart.

length, n_lags = 512, 160
frames = recording[: len(time) // length * length].reshape(-1, length)
padded = np.fft.rfft(frames, 2 * length, axis=1)
X = np.fft.irfft(np.abs(padded) ** 2, axis=1)[:, 1 : n_lags + 1] / length
print("frames, lags:", X.shape, f"{np.mean(X < 0):.0%} of the cells are negative")

model = SkellamSNMF(n_components=3, random_state=0).fit(X)

# %%
# The amounts follow the true power of each voice, which the fit has not seen.

power = (loudness**2)[:, : frames.size].reshape(3, -1, length).mean(axis=2)
correlation = np.corrcoef(power, model.amounts_.T)[:3, 3:]
_, order = linear_sum_assignment(-correlation)
print("correlation with the true power:", correlation[range(3), order].round(3))

figure, axes = plt.subplots(3, 2, figsize=(9.5, 5.4), layout="constrained", width_ratios=(1, 2.2))
middle = (np.arange(len(frames)) + 0.5) * length / rate
for k, (shape, curve) in enumerate(axes):
    component, found = model.components_[order[k]], model.amounts_[:, order[k]]
    shape.plot(1000 * np.arange(1, n_lags + 1) / rate, component, color=f"C{k}")
    shape.axhline(0, color="0.8", lw=0.8)
    shape.set_yticks([])
    curve.fill_between(middle, power[k], color="0.85", label="true power")
    scale = (found @ power[k]) / (found @ found)
    curve.plot(middle, scale * found, color=f"C{k}", lw=1.3, label="found")
    curve.set_xlim(0, seconds)
axes[0, 0].set_title("what a voice is: autocorrelation")
axes[0, 1].set_title("when it sounds")
axes[0, 1].legend(ncols=2, loc="upper right", bbox_to_anchor=(1, 1.35))
axes[2, 0].set_xlabel("lag, ms")
axes[2, 1].set_xlabel("time, s")
plt.show()
