"""What importing and first use cost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

TINY_FIT = """
import numpy as np
from seminmf import SkellamSNMF
print(SkellamSNMF(2, random_state=0, tol=1.0).fit(np.eye(3)).objective_)
"""


def run(code, **environment):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )


def test_import_is_lazy():
    loaded = run("import sys, seminmf; print(*sys.modules)").stdout.split()
    heavy = {"numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib", "tqdm", "typer"}
    assert not heavy & set(loaded)


def test_names_are_there_before_they_are_imported():
    code = "import seminmf; print('SkellamSNMF' in dir(seminmf), seminmf.SkellamSNMF().solver)"
    assert run(code).stdout.split()[0] == "True"


def test_a_fit_needs_no_plots_nor_bars():
    loaded = run(TINY_FIT + "import sys; print(*sys.modules)").stdout.split()
    assert not {"matplotlib", "tqdm", "typer", "rich", "safetensors"} & set(loaded)


FIT = """
import numpy as np
from seminmf import SkellamSNMF
X = np.random.RandomState(0).normal(size=(60, 12))
model = SkellamSNMF(3, random_state=0, max_iter=20, tol=0).fit(X)
print(model.activations_.tobytes().hex(), model.components_.tobytes().hex())
"""


@pytest.mark.slow
def test_kernels_are_compiled_once_and_give_the_same_bits(tmp_path):
    first, second = (run(FIT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert "compiling" in first.stderr
    assert "compiling" not in second.stderr
    assert first.stdout == second.stdout
