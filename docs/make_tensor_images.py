"""Draw the pictures of the page on tensors: ``python docs/make_tensor_images.py``."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seminmf import plot
from seminmf._views.pictures import png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
IMAGES = HERE / "images"


def main() -> None:
    """Write both pictures, of the models that the page fits."""
    names = run_page()
    (IMAGES / "tensor_factors.png").write_bytes(png(plot.factors(names["labelled"])[0].figure))
    (IMAGES / "tensor_spikes.png").write_bytes(png(draw_spikes(names)))


def run_page() -> dict[str, Any]:
    """All names that the examples of the page define."""
    names: dict[str, Any] = {}
    text = (HERE / "tensors.md").read_text("utf-8")
    for example in doctest.DocTestParser().get_examples(text):
        if "Traceback" not in example.want and not example.exc_msg:
            exec(compile(example.source, "tensors.md", "single"), names)  # our own page
    return names


def draw_spikes(names: dict[str, Any]) -> Figure:
    """Waveforms and firing, true and found, after the shift that fits best."""
    from matplotlib.figure import Figure

    true, when = names["shapes"], names["when"]
    found, fired = names["waveforms"], names["fired"]
    figure = Figure(figsize=(9, 5), layout="constrained")
    panels = figure.subplots(2, 3, width_ratios=[1, 1, 3])
    for r in range(2):
        q, shift = _match(when[:, r], fired)
        scale = np.linalg.norm(true[..., r]) / np.linalg.norm(found[..., q])
        for ax, waves, title in (
            (panels[r, 0], true[..., r], f"neuron {r + 1}: true"),
            (panels[r, 1], np.roll(found[..., q] * scale, -shift, axis=0), "found"),
        ):
            ax.plot(waves + 4 * np.arange(4))
            ax.set_yticks(4 * np.arange(4), ["a", "b", "c", "d"])
            ax.set_title(title)
            ax.set_xlabel("lag")
        ax = panels[r, 2]
        ax.vlines(np.flatnonzero(when[:, r]), -1, 0, color="0.5", label="true")
        ax.plot(np.roll(fired[:, q], shift) / fired[:, q].max(), label="found")
        ax.set_xlim(0, 400)
        ax.set_yticks([])
        ax.set_xlabel("time")
        ax.legend(loc="upper right")
    return figure


def _match(when: Any, fired: Any) -> tuple[int, int]:
    """Which of the found factors fires as a true one, and how much earlier."""
    lags = np.arange(-14, 15)
    fits = [[np.corrcoef(when, np.roll(f, s))[0, 1] for s in lags] for f in fired.T]
    q, s = np.unravel_index(np.argmax(fits), np.shape(fits))
    return int(q), int(lags[s])


if __name__ == "__main__":
    main()
