"""Fixtures that tests in several folders have."""

import pytest

from seminmf._data import source
from seminmf._kernels.em import sparse_estep


@pytest.fixture
def many_tasks(monkeypatch):
    """Kernels split small data into many tasks, so that there is something for threads to do."""
    monkeypatch.setattr(source, "_TASK", 1 << 8)
    monkeypatch.setattr(sparse_estep, "_SQUARE", 1)
