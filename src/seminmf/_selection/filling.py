"""How well hidden cells are filled in, for each number of components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import clone

from .._estimators.tasks import run_tasks
from . import heldout
from .verdict import Verdict


def choose_by_fills(
    estimator: Any,
    X: NDArray,
    numbers: Sequence[int],
    n_folds: int,
    share: float,
    random: RandomState,
    n_jobs: int | None,
) -> Verdict | None:
    """Compare numbers of components by squared errors of hidden cells, of features of one size.

    The best is taken, and not a smaller one that is as good: it is fills that are wanted.
    None if there are no cells to spare.
    """
    masks = [heldout.hide(~np.isnan(X), share, random) for _ in range(n_folds)]
    if not all(mask.any() for mask in masks):
        return None
    seeds = random.randint(2**31 - 1, size=n_folds)
    sizes = np.nanstd(X, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    # The same cells and the same seeds for all numbers.
    folds = [
        (estimator, X, n_components, int(seed), mask, sizes)
        for n_components in numbers
        for seed, mask in zip(seeds, masks, strict=True)
    ]
    scores = np.concatenate(run_tasks(score_fills, folds, n_jobs, 0)).reshape(len(numbers), -1)
    n_hidden = [int(mask.sum()) for mask in masks]
    unit = "in the mean squared error"
    return heldout.conclude(numbers, scores, n_hidden, unit, within=0.0)


def score_fills(
    estimator: Any, X: NDArray, n_components: int, seed: int, hidden: NDArray, sizes: NDArray
) -> NDArray:
    """−error² of each hidden cell, in units of its feature's size."""
    model = clone(estimator).set_params(n_components=n_components, random_state=seed)
    model.set_params(n_jobs=1, verbose=0)
    known = np.where(hidden, np.nan, X)
    filled = model.fit(known).impute(known)
    if model._interrupted:
        raise KeyboardInterrupt
    return -(((filled - X) / sizes)[hidden] ** 2)
