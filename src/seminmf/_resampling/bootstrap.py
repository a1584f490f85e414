"""The bootstrap: how factors vary when data like these are drawn again."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._estimators import validation as check
from .._estimators.base import BaseSNMF
from .._estimators.posteriors import Correlated, Interval, Intervals
from .._estimators.tasks import run_tasks
from .._model.model import split_signed
from .record import RefitFile, describe
from .refits import Refit, Refits

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("parametric", "rows")
# Components with this cosine are the same.
_SAME = 0.95
# Draws of activations have at most so many numbers.
_MOST_NUMBERS = 1 << 27


class Bootstrap(Intervals):
    """What `bootstrap` found: intervals, and how often each component came back.

    Attributes
    ----------
    activations, amounts : Interval
        Of shape (n_samples, n_components), with `.lower` and `.upper`.
    components : Interval
        Of shape (n_components, n_features).
    cells : Interval
        Of shape (n_samples, n_features): means of cells, without noise. Computed when first asked
        for.
    n_returned : ndarray of shape (n_components,)
        Number of draws whose refit has the component, with a cosine of 0.95 or more.
    cosines : ndarray of shape (n_components,)
        Mean cosine of the component with its match.
    n_draws : int
    level : float
    kind : {"parametric", "rows"}
    """

    _posterior: Correlated

    def __init__(
        self, factors: Correlated, cosines: NDArray, level: float, kind: str, scale: NDArray
    ) -> None:
        # The model itself comes first, then its refits, all of X / scale.
        self._posterior, self._tails = factors, ((1 - level) / 2, (1 + level) / 2)
        self._scale = scale
        self.n_returned = np.sum(cosines >= _SAME, axis=0)
        self.cosines = cosines.mean(axis=0)
        self.n_draws, self.level, self.kind = len(cosines), level, kind
        self._all_cosines = cosines
        activations, components = self._draws
        self.activations = Interval(*np.maximum(self._ends(activations), 0))
        self.components = Interval(*(self._ends(components) * scale))

    def _ends(self, draws: NDArray) -> NDArray:
        """Quantiles of the refits and, if these went to one side, as far to the other.

        Refits that are off the model say that the model may be as far off the truth.
        """
        model, ends = draws[0], np.quantile(draws[1:], self._tails, axis=0)
        mirrored = 2 * model - ends[::-1]
        return np.array([np.minimum(ends[0], mirrored[0]), np.maximum(ends[1], mirrored[1])])

    @cached_property
    def amounts(self) -> Interval:
        """What each component puts into each sample."""
        return Interval(*np.maximum(super().amounts, 0))

    def at(self, level: float) -> Bootstrap:
        """The same draws, with intervals of another level.

        Parameters
        ----------
        level : float
            Probability of each interval.
        """
        level = check.check_share("level", level)
        return Bootstrap(self._posterior, self._all_cosines, level, self.kind, self._scale)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of samples, components and features."""
        return (len(self.activations.lower), *self.components.lower.shape)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each component: how often it came back, and how alike it was."""
        import pandas as pd

        columns = {
            "returned": self.n_returned,
            "share": self.n_returned / self.n_draws,
            "cosine": self.cosines,
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(len(self.cosines), name="component"))

    def __repr__(self) -> str:
        returned = ", ".join(map(str, self.n_returned))
        return (
            f"Bootstrap({self.kind!r}, {self.n_draws} draws, level {self.level:g}): "
            f"components came back in {returned}"
        )


def bootstrap(
    model: Any,
    X: Any,
    *,
    n_draws: int = 200,
    level: float = 0.9,
    kind: str = "parametric",
    frozen: ArrayLike | None = None,
    cell_noise: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: int | RandomState | None = None,
    verbose: int = 0,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
) -> Bootstrap:
    """Draw data like X many times, fit the model again to each, and see how its factors vary.

    Parameters
    ----------
    model : SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF
        Fitted to X.
    X : array-like of shape (n_samples, n_features)
        The data of the fit, in memory, NaN where not observed.
    n_draws : int, default=200
        Number of refits.
    level : float, default=0.9
        Probability of each interval.
    kind : {"parametric", "rows"}, default="parametric"
        "parametric" draws all observed cells anew: what the model says of them, and noise of the
        size that it found. "rows" draws samples with replacement; it asks nothing of the noise, and
        its intervals of activations, amounts and cells leave out the noise of the sample itself.
    frozen : array-like of bool of shape (n_components,), or of indices
        Components that were frozen in the fit.
    cell_noise : array-like that broadcasts to (n_samples, n_features)
        As it was for the fit.
    n_jobs : int or None, default=None
        Refits at a time. None and -1 are as many as there are cores.
    random_state : int, RandomState or None, default=None
        Source of the draws. The same seed gives the same result, whatever `n_jobs`.
    verbose : int, default=0
        1 shows a progress bar.
    checkpoint : str or path-like, default=None
        File in which refits are noted. If it is there, those that it has are not made again.
    checkpoint_every : float, default=60.0
        Seconds from one writing to the next.

    Returns
    -------
    Bootstrap
        With intervals of `activations`, `components`, `amounts` and `cells`, and `n_returned`.

    Notes
    -----
    Refits start from the model's factors, with the price on activations that it found, and find the
    noise anew; those of a `BayesianSkellamSNMF` are point estimates. Components of a refit are
    matched to the model's by their cosines. An interval holds the refits' quantiles and, where
    refits are off the model to one side, reaches as far to the other: the model may be off the
    truth as they are off the model.

    Examples
    --------
    >>> from seminmf import SkellamSNMF, bootstrap
    >>> from seminmf.datasets import load_ionosphere
    >>> X = load_ionosphere().data[:100, 2:]
    >>> model = SkellamSNMF(2, random_state=0).fit(X)
    >>> found = bootstrap(model, X, n_draws=20, random_state=0)
    >>> found.components.lower.shape, found.amounts.upper.shape, found.cells.lower.shape
    ((2, 32), (100, 2), (100, 32))
    >>> found.n_returned
    array([20, 20])
    """
    n_draws = check.check_count("n_draws", n_draws, least=2)
    level = check.check_share("level", level)
    check.check_choice("kind", kind, KINDS)
    check.check_jobs(n_jobs)
    every = check.check_seconds("checkpoint_every", checkpoint_every)
    refits = _checked(model, X, kind, frozen, cell_noise)
    _check_size(n_draws, refits.model)
    seeds = check_random_state(random_state).randint(2**31, size=n_draws)
    known = random_state is not None
    with RefitFile.open(checkpoint, every, describe(refits), seeds, known) as record:
        tasks = [(refits, number, int(record.seeds[number])) for number in record.missing()]
        run_tasks(_refit, tasks, n_jobs, verbose, note=record.keep)
        factors, cosines = _with_model(record.refits(), refits.model)
    return Bootstrap(factors, cosines, level, kind, model.feature_scale_)


def check_bootstrap(found: Any, model: Any) -> None:
    """Refuse what is no bootstrap of a model."""
    if not isinstance(found, Bootstrap):
        raise ValueError(
            f"bootstrap must be what seminmf.bootstrap returns; found a {type(found).__name__}."
        )
    shape = (len(model.activations_), *model.components_.shape)
    if found.shape != shape:
        raise ValueError(
            f"bootstrap must be one of the model, with samples, components and features {shape}; "
            f"found {found.shape}."
        )


def _checked(model: Any, X: Any, kind: str, frozen: Any, cell_noise: Any) -> Refits:
    """What is refitted, after all checks."""
    if not isinstance(model, BaseSNMF):
        raise ValueError(
            "model must be a fitted SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF; "
            f"found a {type(model).__name__}."
        )
    check_is_fitted(model)
    model._check_transformable()
    data = model._check_data(X, cell_noise=cell_noise)
    if not data.source.in_memory:
        raise ValueError("X must be in memory for bootstrap; found data on disk or on a cluster.")
    if data.shape[0] != len(model.activations_):
        raise ValueError(
            f"X must be the data of the fit, {len(model.activations_)} samples; "
            f"found {data.shape[0]}."
        )
    mask = check.check_frozen(frozen, len(model.components_), model.components_)
    return Refits.of(model, data, kind, mask)


def _check_size(n_draws: int, model: Any) -> None:
    n_samples, n_components = model.activations_.shape
    most = _MOST_NUMBERS // (n_samples * n_components)
    if n_draws > most:
        raise ValueError(
            f"n_draws must be at most {most} for {n_samples} samples and {n_components} "
            f"components; found {n_draws}."
        )


def _refit(refits: Refits, number: int, seed: int) -> tuple[int, Refit]:
    return number, refits.draw(RandomState(seed))


def _with_model(found: list[Refit], model: Any) -> tuple[Correlated, NDArray]:
    """The model's factors and then those of the refits, and the cosines of these."""
    components = np.asarray(model._components_of_fit, dtype=np.float64)
    intercept = np.broadcast_to(getattr(model, "_intercept_of_fit", 0.0), components.shape[1])
    parts = zip((model.activations_, components, intercept), zip(*found, strict=True), strict=False)
    activations, components, intercept = (np.array([own, *others]) for own, others in parts)
    atoms = np.moveaxis(split_signed(components), 0, 1)
    cosines = np.array([refit.cosines for refit in found])
    return Correlated(activations, atoms, intercept), cosines
