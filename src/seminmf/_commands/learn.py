"""`seminmf learn`: a prior from many tables."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .._estimators.locks import FileLock
from ..bayesian import BayesianSkellamSNMF
from ..io import LEARNER
from ..prior_learning import PriorLearner
from . import formats
from .models import feature_names, load_file
from .options import ModelOptions, TableOptions
from .output import print_json, say, spoken_warnings
from .tables import read_table

# Seconds between looks at a state that another command works on.
_PAUSE = 0.1


def learn(
    state: str,
    data: list[str],
    n_components: int | None,
    learning_rate: str | None,
    table: TableOptions,
    model: ModelOptions,
    as_json: bool,
) -> None:
    """Go on learning a prior from tables, one after the other; each is in the state when said."""
    if state == formats.STANDARD:
        raise ValueError("What is learned cannot be written to standard output; give a file.")
    formats.check_places([state], data)
    with _alone_with(state):
        learner = _learner(state, n_components, learning_rate, model)
        names = feature_names(learner)
        learned = []
        with spoken_warnings() as warnings:
            first = read_table(data[0], table, names)
            names = [str(name) for name in first.features] if first.named else names
            for path in data[1:]:
                if path != formats.STANDARD:
                    read_table(path, table, names)  # rather fail before the first is learned
            for number, path in enumerate(data):
                found = read_table(path, table, names) if number else first
                learner.partial_fit(found.X)
                learner.save(state)
                learned.append({"data": path, "n_matrices": learner.n_matrices_})
                say(f"{path}: learned as number {learner.n_matrices_}")
        if as_json:
            print_json({"state": state, "learned": learned, "warnings": warnings})


@contextmanager
def _alone_with(state: str) -> Iterator[None]:
    """Work on the state when no other command does: what it learns would be lost."""
    lock = FileLock(state)
    if not lock.acquire():
        say(f"{state} is in use by another command, which is waited for.")
        while not lock.acquire():
            time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.release()


def _learner(
    state: str, n_components: int | None, learning_rate: str | None, model: ModelOptions
) -> Any:
    """The learner in the file, or a new one."""
    given = model.given()
    if os.path.exists(state):
        learner = load_file(state)
        if type(learner).__name__ != LEARNER:
            raise ValueError(f"{state} has a fitted model, not a learned prior.")
        if given or n_components is not None or learning_rate is not None:
            raise ValueError(f"{state} is there, and has its settings: give none to go on with it.")
        return learner
    if n_components is None:
        raise ValueError(f"{state} is not there; give the number of components by -k to begin it.")
    estimator = BayesianSkellamSNMF(n_components, **given)
    rate: float | str = "annealed" if learning_rate is None else learning_rate
    with suppress(ValueError):  # a name; the learner knows which
        rate = float(rate)
    return PriorLearner(estimator, learning_rate=rate)
