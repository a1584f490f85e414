"""How many components? Evidence, hidden cells, or components that are switched off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_random_state

from ._data.source import Source
from ._estimators import validation as check
from ._estimators.tasks import run_tasks
from ._estimators.tensor import BaseSNTF
from ._selection import evidence, heldout, relevance, tensors
from ._selection.comparison import Comparison
from ._selection.verdict import Verdict
from .bayesian import BayesianSkellamSNMF
from .tensor import BayesianSkellamSNTF, SkellamSNTF

CRITERIA = ("elbo", "heldout", "relevance")
# Of data that are sparse, on disk or elsewhere, no more cells than this are looked at.
_MOST_CELLS = 1 << 22


@dataclass(frozen=True, repr=False)
class Selection:
    """What `select_n_components` found.

    Attributes
    ----------
    best : int
        The number of components chosen.
    clear : bool
        Whether no other candidate comes close.
    verdict : str
        The same in words.
    table : DataFrame
        A row for each candidate: `n_components`; `score`, larger is better; its
        `standard_error` over the runs; `n_runs`; `behind`, the distance to the best score, with
        `behind_error`. For criterion "elbo" also `lower_bound`, the bound without corrections.
        For criterion "relevance" a row for each component instead, the most used first:
        `component`; its `share` of all activations; its mean `activation`; the prior's `rate` that
        was learned; the `counts` behind it in the mean sample; and whether it is `on`.
    criterion : {"elbo", "heldout", "relevance", "fills"}
        "fills" is what `SNMFImputer` goes by: squared errors of hidden cells.
    """

    best: int
    clear: bool
    verdict: str
    table: Any
    criterion: str

    def __repr__(self) -> str:
        table = self.table.to_string(index=False, float_format=lambda value: f"{value:.6g}")
        return f"Selection by {self.criterion!r}: {self.verdict}\n{table}"

    def plot(self, ax: Any = None) -> Any:
        """Draw the scores with error bars, or the components' shares, and mark the choice.

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

            ax = Figure(layout="constrained").subplots()
        if self.criterion == "relevance":
            self._draw_shares(ax)
        else:
            self._draw_scores(ax)
        ax.set_ylabel(_AXIS[self.criterion])
        ax.legend()
        return ax

    def _draw_scores(self, ax: Any) -> None:
        table = self.table
        errors = table["standard_error"].fillna(0.0)
        ax.errorbar(table["n_components"], table["score"], yerr=errors, marker="o", capsize=3)
        ax.axvline(self.best, color="0.6", linestyle="--", zorder=0, label=f"chosen: {self.best}")
        ax.set_xticks(table["n_components"])
        ax.set_xlabel("number of components")

    def _draw_shares(self, ax: Any) -> None:
        table = self.table
        for on, name, color in ((True, "on", "C0"), (False, "off", "0.6")):
            rows = table[table["on"] == on]
            label = f"{name}: {len(rows)}"
            ax.bar(rows["component"], rows["share"], color=color, label=label)
        ax.set_xticks(table["component"])
        ax.set_xlabel("component")


_AXIS = {
    "elbo": "log evidence (nats)",
    "heldout": "log-likelihood of a hidden cell (nats)",
    "fills": "minus the squared error of a hidden cell",
    "relevance": "share of all activations",
}


def select_n_components(
    X: Any,
    candidates: Iterable[int],
    *,
    estimator: BayesianSkellamSNMF | SkellamSNTF | BayesianSkellamSNTF | None = None,
    criterion: str = "elbo",
    letter: str | None = None,
    learn_prior: bool = True,
    n_init: int = 3,
    n_folds: int = 5,
    share: float = 0.1,
    n_jobs: int | None = None,
    random_state: int | RandomState | None = None,
    verbose: int = 0,
) -> Selection:
    """Choose the number of components.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or a tensor
        Data of any sign, NaN where not observed. If they are sparse, on disk or in chunks, and
        more than some million cells, a part of the samples is drawn.
    candidates : iterable of int
        Numbers of components to compare. For criterion "relevance" only the largest matters, and
        the choice may be any number up to it.
    estimator : BayesianSkellamSNMF, SkellamSNTF, BayesianSkellamSNTF or None, default=None
        Whose settings all fits have, but for `n_components`. None is ``BayesianSkellamSNMF()``.
        Tensor models are compared by criterion "heldout".
    criterion : {"elbo", "heldout", "relevance"}, default="elbo"
        "elbo" compares the evidence of the data: the variational bound with the gaps closed that
        the mean-field posterior leaves. "heldout" hides cells and compares their likelihood; it
        takes longest. "relevance" fits the largest candidate only, with a prior rate learned for
        each component, and counts the components that are not switched off; it takes least, and
        misses components that the noise nearly hides.
    letter : str or None, default=None
        Of a tensor model: the latent letter whose size is chosen, while others have those of
        `estimator`. None is the only one.
    learn_prior : bool, default=True
        Whether the activations' prior is learned for each candidate. False keeps the prior of
        `estimator`, in units of its `scale`; a prior that is far from the activations decides the
        choice more than the data do.
    n_init : int, default=3
        Starts for each candidate, of which the best counts; for criteria "elbo" and "relevance".
        With one start nothing is clear: another might find more.
    n_folds : int, default=5
        How often cells are hidden, for criterion "heldout". The same for all candidates.
    share : float, default=0.1
        Share of the observed cells that are hidden, between 0 and 1. Each sample and each feature
        keeps one.
    n_jobs : int or None, default=None
        Fits that run at the same time. None and -1 are as many as there are cores.
    random_state : int, RandomState or None, default=None
        Source of starts, hidden cells and draws. The same seed gives the same result, whatever
        `n_jobs`.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    Selection
        With `best`, `clear`, `verdict`, `table` and `plot`.

    Notes
    -----
    The choice by "elbo" is the candidate with the most evidence. It is clear if no other comes
    within 10 nats, nor within twice what the best two starts of either differ by. The choice by
    "heldout" is the smallest one that is behind the best by no more than one standard error of the
    difference, over cells or over folds, whichever is larger. It is clear if all others are behind
    by two errors and beyond a 95 % interval of the folds. The choice by "relevance" is the number
    of components about whose activations the data tell more than the prior: more counts are behind
    them, in the mean sample, than the prior's shape.

    For real data, all see X in units of each feature's noise, which is found with many components,
    and of a φ that is the same for all candidates, as if it were counts. They give each fit one
    more component that is not counted: its two signs are equal and flat, so that it holds noise and
    no signal.

    Examples
    --------
    >>> from seminmf import BayesianSkellamSNMF, sample_skellam_snmf, select_n_components
    >>> X, _, _ = sample_skellam_snmf(60, 10, 2, activation_shape=0.5, random_state=0)
    >>> counts = BayesianSkellamSNMF(likelihood="integer")
    >>> found = select_n_components(X, [1, 2, 3], estimator=counts, random_state=0)
    >>> found.best, found.clear
    (2, True)

    One fit with more components than needed gives the same answer.

    >>> found = select_n_components(X, [5], estimator=counts, criterion="relevance", random_state=0)
    >>> found.best, found.table["on"].tolist()
    (2, [True, True, False, False, False])
    """
    estimator = BayesianSkellamSNMF() if estimator is None else estimator
    numbers = _check_candidates(candidates)
    check.check_choice("criterion", criterion, CRITERIA)
    if isinstance(estimator, BaseSNTF):
        found = _of_tensor(
            X, numbers, estimator, criterion, letter, n_folds, share, random_state, n_jobs, verbose
        )
        return Selection(found.best, found.clear, found.sentence, found.table, criterion)
    if letter is not None:
        raise ValueError(f"letter must be None but for tensor models; found {letter!r}.")
    _check_options(estimator, criterion, learn_prior, n_init, n_folds, share, n_jobs)
    random = check_random_state(random_state)
    X = _check_data(estimator, X, numbers, random)
    comparison = Comparison.of(estimator, X, learn_prior, most=numbers[-1])
    jobs: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    if criterion == "elbo":
        found = _by_evidence(comparison, numbers, n_init, random, jobs)
    elif criterion == "heldout":
        found = _by_hidden_cells(comparison, numbers, n_folds, share, random, jobs)
    else:
        starts = [(comparison, numbers[-1], seed) for seed in _seeds(random, n_init)]
        found = relevance.conclude(run_tasks(relevance.relevance_of_run, starts, **jobs))
    return Selection(found.best, found.clear, found.sentence, found.table, criterion)


def _of_tensor(
    X: Any,
    numbers: Sequence[int],
    estimator: BaseSNTF,
    criterion: str,
    letter: str | None,
    n_folds: Any,
    share: Any,
    random_state: Any,
    n_jobs: Any,
    verbose: int,
) -> Verdict:
    """The size of a latent letter, by hidden cells."""
    if criterion != "heldout":
        raise ValueError(f"criterion must be 'heldout' for tensor models; found {criterion!r}.")
    letter = tensors.check_letter(estimator, letter)
    check.check_count("n_folds", n_folds)
    check.check_share("share", share)
    check.check_jobs(n_jobs)
    array, random = np.asarray(X, dtype=np.float64), check_random_state(random_state)
    masks = [tensors.hidden_cells(array, share, random) for _ in range(n_folds)]
    seeds = _seeds(random, (len(numbers), n_folds))
    folds = [
        (estimator, array, letter, size, seed, mask)
        for size, row in zip(numbers, seeds, strict=True)
        for seed, mask in zip(row, masks, strict=True)
    ]
    scores = run_tasks(tensors.predict_hidden, folds, n_jobs, verbose)
    joined = np.concatenate(scores).reshape(len(numbers), -1)
    return heldout.conclude(numbers, joined, [int(mask.sum()) for mask in masks])


def _by_evidence(
    comparison: Comparison, numbers: Sequence[int], n_init: int, random: RandomState, jobs: dict
) -> Verdict:
    seeds = _seeds(random, (len(numbers), n_init))
    starts = [(comparison, k, seed) for k, row in zip(numbers, seeds, strict=True) for seed in row]
    runs = run_tasks(evidence.evidence_of_run, starts, **jobs)
    return evidence.conclude(numbers, np.reshape(runs, (len(numbers), n_init, 2)))


def _by_hidden_cells(
    comparison: Comparison,
    numbers: Sequence[int],
    n_folds: int,
    share: float,
    random: RandomState,
    jobs: dict,
) -> Verdict:
    seeds = _seeds(random, (len(numbers), n_folds))
    masks = [heldout.hide(~np.isnan(comparison.X), share, random) for _ in range(n_folds)]
    if not all(mask.any() for mask in masks):
        raise ValueError(
            "criterion 'heldout' must have cells to hide, and each sample and feature keeps one; "
            f"found none to spare in data of shape {comparison.X.shape}."
        )
    folds = [
        (comparison, k, seed, mask)
        for k, row in zip(numbers, seeds, strict=True)
        for seed, mask in zip(row, masks, strict=True)
    ]
    cells = np.concatenate(run_tasks(heldout.predict_hidden, folds, **jobs), axis=1)
    scores = [
        heldout.log_likelihoods(each, comparison) for each in np.split(cells, len(numbers), 1)
    ]
    return heldout.conclude(numbers, np.array(scores), [int(mask.sum()) for mask in masks])


def _seeds(random: RandomState, size: int | tuple[int, int]) -> NDArray:
    return random.randint(2**31 - 1, size=size)


def _check_candidates(candidates: Any) -> list[int]:
    """The candidates in order, each once."""
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise ValueError(f"candidates must be a list of integers; found {candidates!r}.")
    numbers = [check.check_count("each of candidates", value) for value in candidates]
    if not numbers:
        raise ValueError("candidates must hold at least one number of components; found none.")
    return sorted(set(numbers))


def _check_options(
    estimator: Any,
    criterion: str,
    learn_prior: Any,
    n_init: Any,
    n_folds: Any,
    share: Any,
    n_jobs: Any,
) -> None:
    if not isinstance(estimator, BayesianSkellamSNMF):
        raise ValueError(
            "estimator must be a BayesianSkellamSNMF, point estimates know neither evidence nor "
            f"the noise of a hidden cell; found {estimator!r}."
        )
    if not isinstance(learn_prior, (bool, np.bool_)):
        raise ValueError(f"learn_prior must be True or False; found {learn_prior!r}.")
    if criterion == "relevance" and not learn_prior:
        raise ValueError(
            "learn_prior must be True for criterion 'relevance', which learns a rate for each "
            "component; found False."
        )
    check.check_count("n_init", n_init)
    check.check_count("n_folds", n_folds)
    check.check_share("share", share)
    check.check_jobs(n_jobs)


def _check_data(
    estimator: BayesianSkellamSNMF, X: Any, numbers: Sequence[int], random: RandomState
) -> NDArray:
    """X in float64, after all checks that a fit of any candidate would make."""
    model = clone(estimator).set_params(n_components=numbers[0])
    model._check_parameters()
    model._check_plain("select_n_components")
    source = model._check_data(X, fitted=False).source
    for n_components in numbers:
        model.set_params(n_components=n_components)
        model._check_priors(*source.shape)
    return _some_samples(source, random).astype(np.float64)


def _some_samples(source: Source, random: RandomState) -> NDArray:
    """All samples, or of data that are not in an array as many as can be compared here."""
    n_samples, n_features = source.shape
    most = max(_MOST_CELLS // n_features, 1)
    if source.in_memory or n_samples <= most:
        return source.rows(0, n_samples)
    return source.take(np.sort(random.choice(n_samples, most, replace=False)))
