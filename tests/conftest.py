"""Fixtures that tests in several folders have."""

import os

import pytest

from seminmf._data import source
from seminmf._kernels.em import sparse_estep


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """Some tests write hundreds of checkpoints; that a file outlives a power cut is not tested."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def many_tasks(monkeypatch):
    """Kernels split small data into many tasks, so that there is something for threads to do."""
    monkeypatch.setattr(source, "_TASK", 1 << 8)
    monkeypatch.setattr(sparse_estep, "_SQUARE", 1)
