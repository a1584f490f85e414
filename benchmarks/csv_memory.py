"""Peak memory of `seminmf fit` on a large CSV: `python benchmarks/csv_memory.py [--megabytes 200]`.

A table of 100 features with a tenth of its cells empty, as text and as an array (NPY): each is
fitted in a process of its own, for a few iterations. The peak above that of the same command for a
table of 4000 rows is given as a multiple of what the numbers take.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from tables import row, table_head

MEGABYTE = 2**20
N_FEATURES = 100
# So many rows are drawn, and repeated until the file is large enough.
N_DRAWN = 4000


def write(folder: Path, n_bytes: int) -> tuple[Path, Path, int]:
    """The table as text and as an array, and how many bytes its numbers take."""
    rng = np.random.default_rng(0)
    activations = rng.gamma(0.5, 2.0, (N_DRAWN, 3))
    drawn = activations @ rng.normal(size=(3, N_FEATURES)) + rng.normal(size=(N_DRAWN, N_FEATURES))
    drawn = np.where(rng.random(drawn.shape) < 0.1, np.nan, drawn)
    cells = (["" if np.isnan(value) else f"{value:.9g}" for value in line] for line in drawn)
    lines = "".join(",".join(line) + "\n" for line in cells).encode()
    times = max(1, round(n_bytes / len(lines)))
    text, array = folder / "X.csv", folder / "X.npy"
    with open(text, "wb") as file:
        file.write((",".join(f"f{i}" for i in range(N_FEATURES)) + "\n").encode())
        for _ in range(times):
            file.write(lines)
    X = np.tile(np.array([[float(f"{value:.9g}") for value in line] for line in drawn]), (times, 1))
    np.save(array, X)
    return text, array, X.nbytes


def peak_of(path: Path, folder: Path) -> tuple[float, float]:
    """Megabytes at the most, and seconds, of a command that fits the table in a file."""
    command = [sys.executable, "-W", "ignore", "-c", "from seminmf.cli import app; app()"]
    command += [
        "fit",
        str(path),
        "-k",
        "3",
        "--max-iter",
        "3",
        "--seed",
        "0",
        "-o",
        str(folder / "model.snmf"),
    ]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(process.stderr.read().decode())
    return usage.ru_maxrss * 1024 / MEGABYTE, time.perf_counter() - begin


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200, help="size of the CSV")
    options = parser.parse_args()
    head = ["file", "MB", "numbers, MB", "peak, MB", "above 4000 rows / numbers", "seconds"]
    print("\n".join(table_head(head)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = write(folder, 1)[:2]
        for path in small:
            peak_of(path, folder)  # compiles
        least = [peak_of(path, folder)[0] for path in small]
        *large, n_bytes = write(folder, options.megabytes * MEGABYTE)
        for path, before in zip(large, least, strict=True):
            peak, seconds = peak_of(path, folder)
            sizes = [path.stat().st_size / MEGABYTE, n_bytes / MEGABYTE, peak]
            share = (peak - before) / (n_bytes / MEGABYTE)
            cells = [path.suffix, *(f"{size:.0f}" for size in sizes), f"{share:.1f}"]
            print(row([*cells, f"{seconds:.1f}"]), flush=True)


if __name__ == "__main__":
    main()
