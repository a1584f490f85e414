"""What it brings to say what is known: the noise of each cell, or that components are ≥ 0.

``python benchmarks/recovery.py --told`` asks it. Noise of cells differs up to 100-fold, at random.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from recovery_peers import factors_of
from recovery_scores import Factors, Scores, score
from simulated import KINDS, PLAIN, Draw
from tables import row, table_head

from seminmf import SkellamSNMF
from seminmf.experiments._hidden import quiet_and_alone

# Largest standard deviation of a cell over the smallest.
NOISE_RANGE = 100.0


def told(options: argparse.Namespace) -> Iterator[str]:
    """A table: with and without what is known."""
    yield f"cos corr, mean of {options.draws} draws: what is known said, and not said.\n"
    yield from table_head(["known", "signal / noise", "said", "not said"])
    for name, compared in (("noise of each cell", by_cell), ("components ≥ 0", by_sign)):
        for ratio in options.snr:
            found = [compared(ratio, [options.seed, number]) for number in range(options.draws)]
            means = np.mean([[pair[:2] for pair in scores] for scores in found], axis=0)
            yield row([name, f"{ratio:g}", *(f"{cos:.3f} {corr:.3f}" for cos, corr in means)])


def by_cell(ratio: float, seed: list[int]) -> list[Scores]:
    """With the standard deviation of each cell, and without."""
    deviations: list[NDArray] = []

    def noise(random: Generator, truth: Factors) -> NDArray:
        deviations.append(NOISE_RANGE ** random.uniform(-0.5, 0.5, truth.shape))
        return deviations[0] * random.normal(size=truth.shape)

    draw = PLAIN._replace(noise=noise).draw(ratio, seed)
    # The draw brings noise to the size that was asked for: so are its standard deviations.
    unit = np.sqrt(np.mean((draw.noise / deviations[0]) ** 2))
    said = fitted(draw, {}, {"cell_noise": unit * deviations[0]})
    return [score(each, draw.truth) for each in (said, fitted(draw))]


def by_sign(ratio: float, seed: list[int]) -> list[Scores]:
    """With components that are known to be ≥ 0, and without."""
    draw = KINDS["positive-W"].draw(ratio, seed)
    said = fitted(draw, {"positive_components": True})
    return [score(each, draw.truth) for each in (said, fitted(draw))]


def fitted(draw: Draw, parameters: dict | None = None, known: dict | None = None) -> Factors:
    """What a fit finds."""
    n_components = len(draw.truth.components)
    model = SkellamSNMF(n_components, random_state=0, n_jobs=1, **(parameters or {}))
    with quiet_and_alone():
        return factors_of(model.fit(draw.X, **(known or {})))
