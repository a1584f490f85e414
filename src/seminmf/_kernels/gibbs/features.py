"""Draws of components that are at least 0, given the activations."""

from __future__ import annotations

import math

import numpy as np

from ..._numerics.compiled import kernel, part


@part
def _positive_normal(mean, deviation):
    """Draw from a normal distribution, cut off below 0."""
    least = -mean / deviation
    if least < 0.45:
        while True:
            draw = np.random.normal()
            if draw >= least:
                return mean + deviation * draw
    # Far in the tail, by an exponential distribution (Robert 1995).
    rate = 0.5 * (least + math.sqrt(least * least + 4.0))
    while True:
        draw = least - math.log(1.0 - np.random.random()) / rate
        if np.random.random() <= math.exp(-0.5 * (draw - rate) ** 2):
            return deviation * (draw - least)


@kernel
def draw_positive_features(grams, products, scale, bounded, n_scans, seed, values):
    """Draw (V, I) values one after the other, in place; those that are bounded are at least 0.

    Each feature has the density exp(c v − ½ v Q v) in units of `scale` (I,); `grams` (V, V, I) or
    (V, V, 1) has Q, and `products` (V, I) has c.
    """
    np.random.seed(seed)
    n_values, n_features = values.shape
    for i in range(n_features):
        own = i if grams.shape[2] > 1 else 0
        for _ in range(n_scans):
            for k in range(n_values):
                slope = products[k, i]
                for l in range(n_values):
                    if l != k:
                        slope -= grams[k, l, own] * values[l, i]
                size = grams[k, k, own]
                mean, deviation = slope / size, scale[i] / math.sqrt(size)
                if bounded[k]:
                    values[k, i] = _positive_normal(mean, deviation)
                else:
                    values[k, i] = mean + deviation * np.random.normal()
