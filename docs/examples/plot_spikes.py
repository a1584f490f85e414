"""
Spikes: waveforms and firing times by convolution
=================================================

Which neurons fire, when, and with which waveform, in a recording of four channels where spikes
overlap? The model is a convolution: the trace is the sum of waveforms, over lags and channels, that
begin whenever a neuron fires. The recording is simulated, with three neurons whose waveforms have a
sharp trough and a slow wave after it, and noise. Next to it is what is usual: a threshold,
snippets around each crossing, their principal components, and k-means.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.signal import find_peaks
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from seminmf import SkellamSNTF

rng = np.random.default_rng(0)
n_times, n_lags, n_neurons = 1600, 24, 3
lags = np.arange(n_lags)


def waveform(width, sizes, late):
    """A trough and a wave after it, of other sizes on each channel."""
    trough = np.exp(-0.5 * ((lags - 8) / width) ** 2)
    wave = np.exp(-0.5 * ((lags - 13) / (2 * width)) ** 2)
    return np.outer(late * wave - trough, sizes)


waveforms = np.stack(
    [
        waveform(1.3, [3, 1.5, 0.2, 0], 0.5),
        waveform(1.8, [0.3, 1.2, 2.5, 0.8], 0.35),
        waveform(1.2, [0, 0.3, 1, 2.2], 0.6),
    ],
    axis=-1,
)
fires = rng.random((n_times + n_lags - 1, n_neurons)) < [0.012, 0.010, 0.014]
sizes = fires * rng.uniform(0.8, 1.2, size=fires.shape)
windows = np.lib.stride_tricks.sliding_window_view(sizes, n_lags, axis=0)[..., ::-1]
trace = np.einsum("trd,dcr->tc", windows, waveforms)
trace += 0.35 * rng.normal(size=trace.shape)

# %%
# Waveforms are smooth: combinations of twelve bumps, which are known. ``(t-d)r`` says when a neuron
# fires, also before the recording began.

bumps = np.exp(-0.5 * ((lags - np.linspace(0, n_lags - 1, 12)[:, None]) / 1.6) ** 2)
letters = {"r": n_neurons, "d": n_lags, "b": len(bumps)}
model = SkellamSNTF("(t-d)r,rbc,bd->tc", letters, signed="rbc", n_init=1, tol=1e-3, random_state=0)
model.fit(trace, factors={"bd": bumps}, frozen={"bd": True})
firing = model.factors_["(t-d)r"]
found_waves = np.einsum("rbc,bd->rdc", model.factors_["rbc"], bumps)


def events(amounts):
    """Times where about as much begins as in a spike, within five steps."""
    summed = np.convolve(amounts, np.ones(5), "same")
    height = 0.4 * np.quantile(summed[summed > 0.1 * summed.max()], 0.9)
    return find_peaks(summed, height=height, distance=4)[0]


found_times = [events(firing[:, r]) for r in range(n_neurons)]

# %%
# The usual way: troughs below four standard deviations of the noise, snippets, clusters.

noise = np.median(np.abs(trace)) / 0.6745
crossings = find_peaks(-trace.min(axis=1), height=4 * noise, distance=8)[0]
crossings = crossings[(crossings >= 8) & (crossings < n_times - 16)]
snippets = np.array([trace[t - 8 : t + 16] for t in crossings])
scores = PCA(6).fit_transform(snippets.reshape(len(snippets), -1))
cluster = KMeans(n_neurons, n_init=20, random_state=0).fit_predict(scores)
usual_times = [crossings[cluster == k] + n_lags - 9 for k in range(n_neurons)]
usual_waves = np.array([snippets[cluster == k].mean(axis=0) for k in range(n_neurons)])

# %%
# F1 of the firing times, within two steps; a waveform may come out later by some steps and its
# events as much earlier, so both ways are judged at their best shift.


def cosine(true, found):
    """Of two waveforms, at the best shift."""
    shifted = (np.roll(found, s, axis=0) for s in range(-10, 11))
    norms = np.linalg.norm(true) * np.linalg.norm(found)
    return max(float(np.sum(true * one)) / norms for one in shifted)


def f1(true, found):
    """Harmonic mean of precision and recall, at the best shift."""
    best = 0
    for shift in range(-14, 15):
        near = np.abs(true[:, None] - found - shift) <= 2
        best = max(best, int(near[linear_sum_assignment(~near)].sum()))
    return 2 * best / (len(true) + len(found))


pictures = {}
for way, times, waves in (
    ("convolution", found_times, found_waves),
    ("threshold, PCA, k-means", usual_times, usual_waves),
):
    table = np.array([[cosine(waveforms[..., r], w) for w in waves] for r in range(n_neurons)])
    order = linear_sum_assignment(-table)[1]
    right = [f1(np.flatnonzero(fires[:, r]), times[q]) for r, q in enumerate(order)]
    alike = [float(table[r, q]) for r, q in enumerate(order)]
    pictures[way] = right
    print(f"{way:24} F1", np.round(right, 2), "cosine of waveforms", np.round(alike, 2))

# %%
# Where spikes overlap, a snippet has two of them, and its cluster is a guess; the sum of waveforms
# takes them apart. The mean of many snippets is the better picture of a waveform, though: nothing
# in the model tells a sharp event with a broad waveform from a broad event with a sharp one.

fig, (top, bottom) = plt.subplots(2, 1, figsize=(9, 5), layout="constrained", height_ratios=(3, 2))
shown = slice(0, 500)
for c in range(4):
    top.plot(trace[shown, c] - 5 * c, color="0.3", lw=0.7)
for r in range(n_neurons):
    at = np.flatnonzero(fires[n_lags - 1 :, r])
    at = at[at < 500] + 8
    top.plot(at, np.full(len(at), 2.5 + 0.8 * r), "|", ms=9, mew=2, color=f"C{r}")
top.set(title="trace of four channels; marks: when three neurons fired", yticks=[], xlabel="time")
places = np.arange(n_neurons)
for n, (way, right) in enumerate(pictures.items()):
    bottom.bar(places + 0.3 * n - 0.15, right, width=0.3, label=way, color=["C0", "0.7"][n])
bottom.set_xticks(places, [f"neuron {r + 1}" for r in range(n_neurons)])
bottom.set(ylabel="F1 of firing times", ylim=(0, 1.25))
bottom.legend(fontsize="small", ncols=2, loc="upper right")
plt.show()
