"""The examples on tensors, measured: what a user would do without seminmf, TensorLy included.

    python benchmarks/tensor_showcases.py [eeg] [energy] [coupled] [spikes]

Runs docs/examples/plot_*.py, and prints their figures as rows of Markdown. On the recordings of
plot_eeg.py it also runs TensorLy, if it is installed: CP with a mask, the best of three random
starts by its own error; and HALS with two modes ≥ 0, which takes no mask: gaps are the mean trial.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def run(name: str) -> dict[str, Any]:
    """All names that an example defines; what it prints is left out."""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return runpy.run_path(str(EXAMPLES / f"plot_{name}.py"))


def table(titles: list[str], rows: dict[str, Any]) -> None:
    """A table of figures."""
    print("\n| " + " | ".join(titles) + " |")
    print("|" + "---|" * len(titles))
    for way, row in rows.items():
        print(f"| {way} | " + " | ".join(f"{value:.2f}" for value in row) + " |", flush=True)


def eeg() -> None:
    """Cosines of maps and courses with the truth."""
    names = run("eeg")
    rows = dict(names["scores"])
    if importlib.util.find_spec("tensorly"):
        for way, factors in _tensorly(names["X"], names["n_sources"]).items():
            rows[way] = names["matched"](factors[1], factors[2])[1]
    table(["EEG-like trials", "maps", "courses"], rows)


def _tensorly(X: Any, n_components: int) -> dict[str, Any]:
    """Factors of TensorLy, by the way they were found."""
    from tensorly.decomposition import non_negative_parafac_hals, parafac

    seen, found = ~np.isnan(X), []
    for seed in range(3):
        options = {"init": "random", "n_iter_max": 1000, "tol": 1e-8, "random_state": seed}
        factors = parafac(np.where(seen, X, 0), n_components, mask=seen, **options).factors
        error = np.nansum((X - np.einsum("nr,cr,tr->nct", *factors)) ** 2)
        found.append((error, factors))
    rows = {"TensorLy CP, mask": min(found, key=lambda one: one[0])[1]}
    filled = np.where(seen, X, np.nanmean(X, axis=0))
    try:
        hals = non_negative_parafac_hals(filled, n_components, nn_modes={0, 2}, n_iter_max=1000)
        rows["TensorLy HALS, two modes ≥ 0"] = hals.factors
    except np.linalg.LinAlgError:
        print("TensorLy HALS: singular matrix")
    return rows


def energy() -> None:
    """Errors of a day's energy, relative to the mean."""
    names = run("energy")
    table(["energy of a house", *names["columns"]], names["errors"])


def coupled() -> None:
    """R² of the second table of new patients."""
    names = run("coupled")
    shares = [f"{share:.0%} hidden" for share in names["shares"]]
    table(["coupled tables", *shares], names["scores"])


def spikes() -> None:
    """F1 of firing times."""
    names = run("spikes")
    neurons = [f"neuron {r + 1}" for r in range(names["n_neurons"])]
    table(["spikes", *neurons], names["pictures"])


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    showcases = {"eeg": eeg, "energy": energy, "coupled": coupled, "spikes": spikes}
    for chosen in sys.argv[1:] or showcases:
        showcases[chosen]()
