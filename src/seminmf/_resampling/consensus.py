"""Components that come back, from start to start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_random_state

from .._estimators import validation as check
from .._estimators.tasks import run_tasks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# Bars that have a number above them.
_MOST_NUMBERED = 12


@dataclass(frozen=True)
class Consensus:
    """Components that fits from several starts have in common; those of most runs come first.

    Attributes
    ----------
    components : ndarray of shape (n, n_features)
        Means over the runs that had them; absolute values of each run's sum to 1.
    spread : ndarray of shape (n, n_features)
        Standard deviations over these runs; NaN for a component of a single run.
    n_runs_with : ndarray of shape (n,)
        How many runs had each.
    cosines : ndarray of shape (n,)
        Mean cosine of what these runs had with the mean.
    n_runs : int
        Number of runs.
    feature_names : list of str or None
    """

    components: NDArray
    spread: NDArray
    n_runs_with: NDArray
    cosines: NDArray
    n_runs: int
    feature_names: list[str] | None = None

    @property
    def table(self) -> pd.DataFrame:
        """A row for each component: how many runs had it, and how alike they were."""
        import pandas as pd

        columns = {
            "runs": self.n_runs_with,
            "share": self.n_runs_with / self.n_runs,
            "cosine": self.cosines,
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.components), name="component"))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how many runs had each component, with mean cosines if there are few.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6.4, 3.2), layout="constrained").subplots()
        numbers = np.arange(len(self.components))
        ax.bar(numbers, self.n_runs_with, color="#0072B2", width=0.7)
        # More of them would not be legible.
        shown = zip(numbers, self.cosines, strict=True) if len(numbers) <= _MOST_NUMBERED else ()
        for number, cosine in shown:
            height = self.n_runs_with[number]
            ax.annotate(f"{cosine:.2f}", (number, height), ha="center", va="bottom", fontsize=8)
        ax.axhline(self.n_runs, color="0.6", lw=1)
        ax.set(xticks=numbers, xlabel="component", ylabel="runs that had it")
        ax.set_title(f"{self.n_runs} runs", fontsize="medium")
        ax.set_ylim(0, 1.12 * self.n_runs)
        return ax


def consensus(
    estimator: Any,
    X: Any,
    *,
    n_runs: int = 20,
    same: float = 0.95,
    n_jobs: int | None = None,
    random_state: int | RandomState | None = None,
    verbose: int = 0,
) -> Consensus:
    """Fit from several starts, and find the components that come back.

    Parameters
    ----------
    estimator : SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF
        Whose settings all fits have, but for `random_state` and `n_init`, which is 1.
    X : array-like of shape (n_samples, n_features)
    n_runs : int, default=20
        Number of fits.
    same : float, default=0.95
        Components with this cosine are the same.
    n_jobs : int or None, default=None
        Fits at a time. None and -1 are as many as there are cores.
    random_state : int, RandomState or None, default=None
        Source of the fits' seeds.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    Consensus
        With `components`, their `spread`, and `n_runs_with`; `table` and `plot` show them.

    Notes
    -----
    All components of all runs are grouped: the one that most runs have something like comes first,
    with the nearest of each run, and so on with those that are left. So there may be more groups
    than components in a fit. A component of one run only stands alone.

    Examples
    --------
    >>> from seminmf import SkellamSNMF, consensus
    >>> from seminmf.datasets import load_ionosphere
    >>> found = consensus(SkellamSNMF(3), load_ionosphere().data[:, 2:], n_runs=5, random_state=0)
    >>> found.n_runs_with[:3]
    array([5, 5, 5])
    """
    check.check_count("n_runs", n_runs, least=2)
    same = check.check_share("same", same)
    check.check_jobs(n_jobs)
    seeds = check_random_state(random_state).randint(2**31, size=n_runs)
    tasks = [(estimator, X, int(seed)) for seed in seeds]
    runs = run_tasks(_components_of_run, tasks, n_jobs=n_jobs, verbose=verbose)
    groups = _groups(np.array([components for components, _ in runs]), same)
    found = [_summary(members) for members in groups]
    components, spread, numbers, cosines = (np.array(part) for part in zip(*found, strict=True))
    return Consensus(components, spread, numbers, cosines, n_runs, runs[0][1])


def _components_of_run(estimator: Any, X: Any, seed: int) -> tuple[NDArray, list[str] | None]:
    """Components of one fit, whose absolute values sum to 1, and the names of the features."""
    model = clone(estimator).set_params(random_state=seed, n_init=1, n_jobs=1, verbose=0)
    components = np.asarray(model.fit(X)._components_of_fit, dtype=np.float64)
    sizes = np.abs(components).sum(axis=1, keepdims=True)
    names = getattr(model, "feature_names_in_", None)
    return components / np.where(sizes > 0, sizes, 1), None if names is None else list(names)


def _groups(components: NDArray, same: float) -> list[NDArray]:
    """Components (n, I) that belong together, from those (n_runs, K, I) of all runs."""
    n_runs, n_components, n_features = components.shape
    flat = components.reshape(-1, n_features)
    lengths = np.linalg.norm(flat, axis=1)
    flat, runs = flat[lengths > 0], np.repeat(np.arange(n_runs), n_components)[lengths > 0]
    directions = flat / lengths[lengths > 0][:, None]
    groups = []
    while len(flat):
        cosines = directions @ directions.T
        near = np.array([len(np.unique(runs[row >= same])) for row in cosines])
        close = np.where(cosines >= same, cosines, 0).sum(axis=1)
        centre = np.lexsort((-close, -near))[0]
        members = _nearest_of_runs(cosines[centre], runs, same)
        groups.append(flat[members])
        left = np.ones(len(flat), dtype=bool)
        left[members] = False
        flat, runs, directions = flat[left], runs[left], directions[left]
    return groups


def _nearest_of_runs(cosines: NDArray, runs: NDArray, same: float) -> NDArray:
    """The nearest component of each run, of those that are near enough."""
    chosen = []
    for run in np.unique(runs[cosines >= same]):
        own = np.flatnonzero(runs == run)
        chosen.append(own[np.argmax(cosines[own])])
    return np.array(chosen)


def _summary(members: NDArray) -> tuple[NDArray, NDArray, int, float]:
    """Mean, standard deviation, number and mean cosine of components that belong together."""
    mean = members.mean(axis=0)
    spread = members.std(axis=0, ddof=1) if len(members) > 1 else np.full(len(mean), np.nan)
    lengths = np.linalg.norm(members, axis=1) * np.linalg.norm(mean)
    return mean, spread, len(members), float(np.mean(members @ mean / lengths))
