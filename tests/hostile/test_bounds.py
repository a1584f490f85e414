"""Compiled code stays within its arrays: tests once more, with numba's look at every index."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What reaches all kernels, with sizes of all kinds.
TESTS = ("tests/kernels", "tests/hostile/test_campaign.py", "tests/test_conformance.py")


@pytest.mark.slow
def test_no_index_is_out_of_bounds(tmp_path):
    # Code that was compiled without the checks must not be taken from the usual cache.
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-X", "dev", "-m", "pytest", "-q", *TESTS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
