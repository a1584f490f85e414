"""What the first fit on a machine compiles, kernel by kernel: `python benchmarks/first_fit.py`.

Each estimator fits in a process of its own, with nothing compiled, and then in another one, which
loads what the first has left. Seconds are those of the processor, two threads together: machines
are shared. Prints Markdown tables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numba.core import event
from tables import row, table_head
from tqdm import tqdm

import seminmf

ESTIMATORS = ("SkellamSNMF", "BayesianSkellamSNMF")
SHAPE, N_COMPONENTS = (200, 10), 3


class Compilations(event.Listener):
    """Seconds that each kernel takes, with all that is compiled for it alone."""

    def __init__(self) -> None:
        self.kernels: list[tuple[str, float]] = []
        self._starts: list[float] = []

    def on_start(self, event: Any) -> None:
        self._starts.append(time.process_time())

    def on_end(self, event: Any) -> None:
        start = self._starts.pop()
        if not self._starts:
            function = event.data["dispatcher"].py_func
            module = function.__module__.removeprefix("seminmf.")
            self.kernels.append((f"{module}.{function.__name__}", time.process_time() - start))


def draw() -> np.ndarray:
    """Real data, dense and without gaps: three components and noise."""
    random = np.random.default_rng(0)
    signal = random.gamma(1.0, size=(SHAPE[0], N_COMPONENTS)) @ random.normal(
        size=(N_COMPONENTS, SHAPE[1])
    )
    return signal + 0.1 * random.normal(size=SHAPE)


def fit(names: list[str]) -> list[dict[str, Any]]:
    """Fit estimators one after the other, each twice: what was compiled, and the seconds."""
    X, results = draw(), []
    for name in names:
        estimator = getattr(seminmf, name)(N_COMPONENTS, n_jobs=2, random_state=0)
        compilations, seconds = Compilations(), []
        with event.install_listener("numba:compile", compilations):
            for _ in range(2):
                start = time.process_time()
                estimator.fit(X)
                seconds.append(time.process_time() - start)
        results.append({"seconds": seconds, "kernels": compilations.kernels})
    return results


def in_process(folder: str, *names: str) -> list[dict[str, Any]]:
    """The same in a process of its own, whose compiled code is in a folder."""
    done = subprocess.run(
        [sys.executable, __file__, *names],
        env={**os.environ, "NUMBA_CACHE_DIR": folder},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    """Print the tables."""
    first, following, kernels = {}, {}, {}
    with tqdm(total=2 * len(ESTIMATORS) + 1, file=sys.stderr) as bar:
        for name in ESTIMATORS:
            with TemporaryDirectory() as folder:
                [first[name]] = in_process(folder, name)
                bar.update()
                [following[name]] = in_process(folder, name)
                bar.update()
        with TemporaryDirectory() as folder:
            together = in_process(folder, *ESTIMATORS)
            bar.update()
    _print_fits(first, following, together)
    for result in together:
        kernels |= dict(result["kernels"])
    print()
    _print_kernels(kernels)


def _print_fits(first: dict, following: dict, together: list) -> None:
    header = ["seconds", "nothing compiled", "of which compiling", "next process", "second fit"]
    print(*table_head(header), sep="\n")
    for name in ESTIMATORS:
        cold, (warm, again) = first[name]["seconds"][0], following[name]["seconds"]
        compiling = sum(seconds for _, seconds in first[name]["kernels"])
        print(row([f"`{name}`", f"{cold:.1f}", f"{compiling:.1f}", f"{warm:.2f}", f"{again:.2f}"]))
    cold = sum(result["seconds"][0] for result in together)
    compiling = sum(seconds for result in together for _, seconds in result["kernels"])
    print(row(["both, one after the other", f"{cold:.1f}", f"{compiling:.1f}", "", ""]))


def _print_kernels(kernels: dict[str, float]) -> None:
    print(*table_head(["kernel", "seconds", "share"]), sep="\n")
    total = sum(kernels.values())
    for name, seconds in sorted(kernels.items(), key=lambda item: -item[1]):
        print(row([f"`{name}`", f"{seconds:.2f}", f"{100 * seconds / total:.0f} %"]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(fit(sys.argv[1:])))
    else:
        main()
