"""How many components? The evidence, or the likelihood of hidden cells, for several numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_random_state

from . import _validation as check
from ._inference.hyperparameters import gamma_shape
from ._inference.vb import geometric_atoms
from ._passes.pool import count_threads
from .bayesian import BayesianSkellamSNMF
from .skellam import SkellamSNMF
from .special import log_hyp0f1_regularized

CRITERIA = ("elbo", "heldout")

# The preliminary fit that finds the noise level has at least this many components.
_GENEROUS = 10
# Real data are seen in the unit in which noise variance / mean |x| is this many: measured.
_NOISE_UNIT = 0.25
# A prior is learned in rounds of a few iterations, the first of which are for the start.
_START_ITERATIONS = 300
_START_TOLERANCE = 1e-3
_ROUNDS = 30
_ROUND_ITERATIONS = 22
_SHAPES = (1e-2, 1e2)
# Posterior shapes that say: these atoms are known.
_KNOWN = 1e8
# Importance sampling: draws for each sample, degrees of freedom and width of the proposal.
_DRAWS = 200
_FREEDOM = 6
_WIDTH = 1.3
# The approximations of the evidence are good to about this many nats.
_CLEAR_LEAD = 10.0
# As many standard errors behind the best, hidden cells leave no doubt.
_CLEAR_ERRORS = 2.0


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
    criterion : {"elbo", "heldout"}
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
        """Draw the scores with error bars, and mark the choice.

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
        table = self.table
        errors = table["standard_error"].fillna(0.0)
        ax.errorbar(table["n_components"], table["score"], yerr=errors, marker="o", capsize=3)
        ax.axvline(self.best, color="0.6", linestyle="--", zorder=0, label=f"chosen: {self.best}")
        ax.set_xticks(table["n_components"])
        ax.set_xlabel("number of components")
        ax.set_ylabel(_AXIS[self.criterion])
        ax.legend()
        return ax


_AXIS = {"elbo": "log evidence (nats)", "heldout": "log-likelihood of a hidden cell (nats)"}


def select_n_components(
    X: Any,
    candidates: Iterable[int],
    *,
    estimator: BayesianSkellamSNMF | None = None,
    criterion: str = "elbo",
    learn_prior: bool = True,
    n_init: int = 2,
    n_folds: int = 5,
    share: float = 0.1,
    n_jobs: int | None = None,
    random_state: int | RandomState | None = None,
    verbose: int = 0,
) -> Selection:
    """Choose the number of components.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Data of any sign, NaN where not observed.
    candidates : iterable of int
        Numbers of components to compare.
    estimator : BayesianSkellamSNMF or None, default=None
        Whose settings all fits have, but for `n_components`. None is ``BayesianSkellamSNMF()``.
    criterion : {"elbo", "heldout"}, default="elbo"
        "elbo" compares the evidence of the data: the variational bound with the gaps closed that
        the mean-field posterior leaves. "heldout" hides cells and compares their likelihood; it
        takes longer, and finds components that are weaker.
    learn_prior : bool, default=True
        Whether shape and rate of the activations' prior are learned for each candidate. False
        keeps those of `estimator`, in units of its `scale`; a prior that is far from the
        activations decides the choice more than the data do.
    n_init : int, default=2
        Starts for each candidate, of which the best counts; for criterion "elbo".
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
    The choice by "elbo" is the candidate with the most evidence. The choice by "heldout" is the
    smallest one that is behind the best by no more than one standard error of the difference.

    For real data, both see X / φ as if it were counts, with real numbers allowed, and φ is the same
    for all candidates. They give each fit one more component that is not counted: its two signs
    are equal and flat, so that it holds noise and no signal.

    Examples
    --------
    >>> from seminmf import BayesianSkellamSNMF, sample_skellam_snmf, select_n_components
    >>> X, _, _ = sample_skellam_snmf(60, 10, 2, activation_shape=0.5, random_state=0)
    >>> counts = BayesianSkellamSNMF(likelihood="integer")
    >>> found = select_n_components(X, [1, 2, 3], estimator=counts, random_state=0)
    >>> found.best, found.clear
    (2, True)
    """
    estimator = BayesianSkellamSNMF() if estimator is None else estimator
    numbers = _check_candidates(candidates)
    check.check_choice("criterion", criterion, CRITERIA)
    _check_options(estimator, learn_prior, n_init, n_folds, share, n_jobs)
    random = check_random_state(random_state)
    X = _check_data(estimator, X, numbers)
    problem = _Problem.of(estimator, X, learn_prior, most=numbers[-1])
    n_runs = n_init if criterion == "elbo" else n_folds
    seeds = random.randint(2**31 - 1, size=(len(numbers), n_runs))
    if criterion == "elbo":
        starts = [(problem, k, seed) for k, row in zip(numbers, seeds, strict=True) for seed in row]
        runs = _run_all(_evidence_of_run, starts, n_jobs, verbose)
        return _conclude_elbo(numbers, np.reshape(runs, (len(numbers), n_runs, 2)))
    masks = [_hide(~np.isnan(X), share, random) for _ in range(n_folds)]
    folds = [
        (problem, k, seed, mask)
        for k, row in zip(numbers, seeds, strict=True)
        for seed, mask in zip(row, masks, strict=True)
    ]
    cells = np.concatenate(_run_all(_scores_of_fold, folds, n_jobs, verbose))
    return _conclude_heldout(numbers, cells.reshape(len(numbers), -1), n_folds)


# --- checks ---------------------------------------------------------------------------------


def _check_candidates(candidates: Any) -> list[int]:
    """The candidates in order, each once."""
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise ValueError(f"candidates must be a list of integers; found {candidates!r}.")
    numbers = [check.check_count("each of candidates", value) for value in candidates]
    if not numbers:
        raise ValueError("candidates must hold at least one number of components; found none.")
    return sorted(set(numbers))


def _check_options(
    estimator: Any, learn_prior: Any, n_init: Any, n_folds: Any, share: Any, n_jobs: Any
) -> None:
    if not isinstance(estimator, BayesianSkellamSNMF):
        raise ValueError(
            "estimator must be a BayesianSkellamSNMF, point estimates know neither evidence nor "
            f"the noise of a hidden cell; found {estimator!r}."
        )
    if not isinstance(learn_prior, (bool, np.bool_)):
        raise ValueError(f"learn_prior must be True or False; found {learn_prior!r}.")
    check.check_count("n_init", n_init)
    check.check_count("n_folds", n_folds)
    number = isinstance(share, (int, float, np.number)) and not isinstance(share, bool)
    if not number or not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1; found {share!r}.")
    check.check_jobs(n_jobs)


def _check_data(estimator: BayesianSkellamSNMF, X: Any, numbers: Sequence[int]) -> NDArray:
    """X in float64, after all checks that a fit of any candidate would make."""
    model = clone(estimator).set_params(n_components=numbers[0])
    model._check_parameters()
    model._check_scale()
    array = model._check_data(X, fitted=False).X
    for n_components in numbers:
        model.set_params(n_components=n_components)
        check.check_prior(model, *array.shape, positive_rate=True)
    return array.astype(np.float64)


# --- the model that is compared -------------------------------------------------------------


class _Problem(NamedTuple):
    """Data as counts or as if they were counts, and how to fit them.

    Attributes
    ----------
    X : (J, I) array
        In units of `scale`.
    scale : float
    estimator : BayesianSkellamSNMF
    learn_prior : bool
    noise : bool
        Whether each fit has one more component, which holds noise.
    """

    X: NDArray
    scale: float
    estimator: BayesianSkellamSNMF
    learn_prior: bool
    noise: bool

    @classmethod
    def of(
        cls, estimator: BayesianSkellamSNMF, X: NDArray, learn_prior: bool, most: int
    ) -> _Problem:
        """The problem with the scale that all candidates share."""
        noise = estimator.likelihood == "real"
        scale = 1.0
        if noise:
            automatic = isinstance(estimator.scale, str)
            scale = _find_scale(X, max(most, _GENEROUS)) if automatic else float(estimator.scale)
        return cls(X / scale, scale, estimator, bool(learn_prior), noise)

    def model(self, n_components: int, seed: int) -> BayesianSkellamSNMF:
        """The estimator for so many components, and one for the noise."""
        model = clone(self.estimator).set_params(
            n_components=n_components, likelihood="integer", check_integer=False, scale=1.0
        )
        model.set_params(random_state=int(seed), n_jobs=1, verbose=0)
        prior = self._first_prior(model, n_components)
        return model.set_params(n_components=n_components + self.noise, **prior)

    def _first_prior(self, model: BayesianSkellamSNMF, n_components: int) -> dict[str, NDArray]:
        """The estimator's priors, or an activation prior of the size of the data."""
        n_samples, n_features = self.X.shape
        size = max(float(np.nansum(np.abs(self.X))) / n_samples, 1e-3)
        shape, rate, atom_shape = check.check_prior(
            model, n_samples, n_features, positive_rate=True
        )
        if self.learn_prior:
            shape, rate = np.ones((1, 1)), np.full((1, 1), 1 / size)
        return {
            "activation_shape_prior": _with_noise(shape, n_components, 1.0, self.noise),
            "activation_rate_prior": _with_noise(rate, n_components, 1 / size, self.noise),
            "atom_shape_prior": _with_noise(atom_shape, n_components, 1.0, self.noise),
        }

    def start(self, n_components: int) -> dict[str, Any]:
        """What `fit` is to know: the atoms of the noise, equal in all cells of both signs."""
        if not self.noise:
            return {}
        n_features = self.X.shape[1]
        shape = np.full((2, n_components + 1, n_features), np.nan)
        shape[:, n_components] = _KNOWN / (2 * n_features)
        return {"atom_shape": shape, "frozen": [n_components]}


def _with_noise(parameter: NDArray, n_components: int, value: float, noise: bool) -> NDArray:
    """A prior's parameter with `value` for the component of the noise."""
    if not noise:
        return parameter
    shape = list(parameter.shape)
    shape[1] = n_components
    width = [(0, 0)] * parameter.ndim
    width[1] = (0, 1)
    return np.pad(np.broadcast_to(parameter, shape), width, constant_values=value)


def _find_scale(X: NDArray, n_components: int) -> float:
    """The unit in which real data are like counts: variance of the noise / mean |x|, or less.

    Less, so that the noise can be as large where X is small; then the noise is in the fit's
    additional component.
    """
    n_observed = int(np.sum(~np.isnan(X)))
    # Half of the observed cells are left to judge the noise by.
    n_components = max(1, min(n_components, n_observed // (2 * sum(X.shape))))
    model = SkellamSNMF(n_components, max_iter=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    signal = model.inverse_transform(model.activations_)
    free = max(n_observed - n_components * sum(X.shape), 1)
    variance = float(np.nansum((X - signal) ** 2)) / free
    size = float(np.mean(np.abs(signal[~np.isnan(X)])))
    if size == 0:
        return 1.0
    return max(_NOISE_UNIT * variance / size, 1e-4 * size)


# --- a fit, with the prior learned ----------------------------------------------------------


def _fit(problem: _Problem, X: NDArray, n_components: int, seed: int) -> BayesianSkellamSNMF:
    """A fit to X, which is the problem's or has more gaps, whose prior follows the posterior."""
    model = problem.model(n_components, seed)
    start = problem.start(n_components)
    if not problem.learn_prior and not problem.noise:
        return model.fit(X)
    tol, max_iter = model.tol, model.max_iter
    model.set_params(tol=max(tol, _START_TOLERANCE), max_iter=min(max_iter, _START_ITERATIONS))
    model.fit(X, **start)
    model.set_params(tol=tol, max_iter=min(max_iter, _ROUND_ITERATIONS))
    for _ in range(_ROUNDS):
        before = model.lower_bound_
        start["atom_shape"] = model.atom_shape_
        start["activation_shape"] = model.activation_shape_
        model.set_params(n_init=1, **_learned_prior(problem, model, n_components))
        model.fit(X, **start)
        if model.lower_bound_ - before < tol * abs(model.lower_bound_):
            break
    return model


def _learned_prior(
    problem: _Problem, model: BayesianSkellamSNMF, n_components: int
) -> dict[str, NDArray]:
    """The prior that suits the posterior best: one for all components, one for the noise."""
    shape, rate = model.activation_shape_, model.activation_rate_
    means, logs = shape / rate, digamma(shape) - np.log(rate)
    sizes = (1, shape.shape[1])
    new_shape = np.array(np.broadcast_to(model.activation_shape_prior, np.shape(shape)))
    new_rate = np.array(np.broadcast_to(model.activation_rate_prior, np.shape(shape)))
    if problem.learn_prior:
        new_shape, new_rate = np.empty(sizes), np.empty(sizes)
    groups = [slice(0, n_components)] if problem.learn_prior else []
    groups += [slice(n_components, None)] if problem.noise else []
    for group in groups:
        mean = float(np.mean(means[:, group]))
        best = float(np.clip(gamma_shape(np.log(mean) - np.mean(logs[:, group])), *_SHAPES))
        new_shape[:, group], new_rate[:, group] = best, best / mean
    return {"activation_shape_prior": new_shape, "activation_rate_prior": new_rate}


# --- evidence -------------------------------------------------------------------------------


def _evidence_of_run(problem: _Problem, n_components: int, seed: int) -> tuple[float, float]:
    """Evidence and bound after one start, both with ln K! for the equivalent labelings."""
    X = problem.X
    model = _fit(problem, X, n_components, seed)
    sensitivity = _sensitivity(X, model.activations_, model.atoms_)
    evidence = _evidence_of_samples(X, model, sensitivity, RandomState(seed))
    evidence += _occam_factor_of_atoms(model, sensitivity, n_components)
    # Densities are those of X in its own unit, and count the labelings.
    constant = gammaln(n_components + 1) - np.sum(~np.isnan(X)) * np.log(problem.scale)
    return evidence + constant, model.lower_bound_ + constant


def _log_density(X: NDArray, rate0: NDArray, rate1: NDArray) -> NDArray:
    """ln P of the Skellam distribution, for real numbers as well; 0 in gaps."""
    x = np.nan_to_num(X)
    side = np.log(np.where(x < 0, rate1, rate0))
    size = np.abs(x)
    value = size * side - rate0 - rate1 + log_hyp0f1_regularized(size + 1, rate0 * rate1)
    return np.where(np.isnan(X), 0.0, value)


def _sensitivity(X: NDArray, activations: NDArray, atoms: NDArray) -> tuple[NDArray, NDArray]:
    """g_s (J, I) with which −ln P has the Hessian (g₀ dλ₀ + g₁ dλ₁)², at the posterior means.

    This is the Hessian of real data, U_s / √r; that of counts is close to it.
    """
    rate0, rate1 = activations @ atoms
    x = np.nan_to_num(X)
    root = np.hypot(x, 2 * np.sqrt(rate0) * np.sqrt(rate1))
    big = (np.abs(x) + root) / 2
    u0 = np.where(x >= 0, big / rate0, rate1 / big)
    u1 = np.where(x >= 0, rate0 / big, big / rate1)
    weight = np.where(np.isnan(X), 0.0, 1 / np.sqrt(root))
    return u0 * weight, -u1 * weight


def _evidence_of_samples(
    X: NDArray,
    model: BayesianSkellamSNMF,
    sensitivity: tuple[NDArray, NDArray],
    random: RandomState,
) -> float:
    """Σ_j ln ∫ P(x_j | λ, mean atoms) p(λ) dλ, by importance sampling.

    The mean-field posterior ignores that the activations of a sample depend on each other. Half of
    the draws come from it, and half from a t distribution of ln λ that has the dependence.
    """
    proposal = _Proposal.of(model, sensitivity)
    shape, rate = (
        np.broadcast_to(prior, model.activation_shape_.shape)
        for prior in (model.activation_shape_prior, model.activation_rate_prior)
    )
    constant = np.sum(shape * np.log(rate) - gammaln(shape), axis=1)
    weights = np.empty((_DRAWS, len(X)))
    for n in range(_DRAWS):
        logs = proposal.draw(random, correlated=bool(n % 2))
        activations = np.exp(logs)
        rates = np.maximum(activations @ model.atoms_, np.finfo(float).tiny)
        prior = constant + np.sum(shape * logs - rate * activations, axis=1)
        likelihood = np.sum(_log_density(X, *rates), axis=1)
        weights[n] = likelihood + prior - proposal.log_density(logs)
    return float(np.sum(logsumexp(weights, axis=0) - np.log(_DRAWS)))


class _Proposal(NamedTuple):
    """Distributions of ln λ (J, K): posterior, and t around it with the given Cholesky factors."""

    shape: NDArray
    rate: NDArray
    centre: NDArray
    factor: NDArray

    @classmethod
    def of(cls, model: BayesianSkellamSNMF, sensitivity: tuple[NDArray, NDArray]) -> _Proposal:
        """From the posterior and the curvature of the likelihood at its means."""
        shape, rate = model.activation_shape_, model.activation_rate_
        n_components = shape.shape[1]
        slopes = _activation_slopes(model, sensitivity)
        precision = slopes @ slopes.transpose(0, 2, 1)
        diagonal = np.arange(n_components)
        precision[:, diagonal, diagonal] += model.activation_shape_prior
        factor = np.linalg.cholesky(_WIDTH * np.linalg.inv(precision))
        return cls(shape, rate, digamma(shape) - np.log(rate), factor)

    def draw(self, random: RandomState, correlated: bool) -> NDArray:
        """One draw for each sample."""
        if not correlated:
            return np.log(np.maximum(random.gamma(self.shape) / self.rate, 1e-300))
        normal = random.normal(size=self.centre.shape)
        normal /= np.sqrt(random.chisquare(_FREEDOM, size=(len(normal), 1)) / _FREEDOM)
        return self.centre + np.einsum("jkl,jl->jk", self.factor, normal)

    def log_density(self, logs: NDArray) -> NDArray:
        """Log-density of the even mixture, one number for each sample."""
        shape, rate, K = self.shape, self.rate, self.shape.shape[1]
        gamma = np.sum(
            shape * np.log(rate) - gammaln(shape) + shape * logs - rate * np.exp(logs), axis=1
        )
        normal = np.linalg.solve(self.factor, (logs - self.centre)[..., None])[..., 0]
        volume = np.log(np.diagonal(self.factor, axis1=1, axis2=2)).sum(axis=1)
        distance = np.log1p(np.sum(normal**2, axis=1) / _FREEDOM)
        t = gammaln((_FREEDOM + K) / 2) - gammaln(_FREEDOM / 2) - K / 2 * np.log(_FREEDOM * np.pi)
        t = t - volume - (_FREEDOM + K) / 2 * distance
        return np.logaddexp(gamma, t) - np.log(2)


def _activation_slopes(model: BayesianSkellamSNMF, sensitivity: tuple[NDArray, NDArray]) -> NDArray:
    """B (J, K, I): the information about ln λ of a sample is B Bᵀ."""
    g0, g1 = sensitivity
    atoms0, atoms1 = model.atoms_
    slopes = g0[:, None, :] * atoms0 + g1[:, None, :] * atoms1
    return slopes * model.activations_[:, :, None]


def _occam_factor_of_atoms(
    model: BayesianSkellamSNMF, sensitivity: tuple[NDArray, NDArray], n_components: int
) -> float:
    """What not knowing the atoms costs: −KL of their posterior, made wider as it should be.

    The mean-field posterior takes the counts behind the data as known. The information H of the
    data themselves about ln θ is smaller, and connects the components: hence ½ (Σ ln α̂ − ln det H),
    and −½ tr for the likelihood, which was taken at the posterior mean.
    """
    shape = model.atom_shape_[:, :n_components]
    prior = np.broadcast_to(model.atom_shape_prior, model.atom_shape_.shape)[:, :n_components]
    divergence = geometric_atoms(shape, prior)[1] + float(
        np.sum(gammaln(prior.sum(axis=(0, 2)))) - np.sum(gammaln(prior))
    )
    activations = model.activations_[:, :n_components]
    slopes = np.concatenate(
        [
            np.einsum("ji,jk,ki->ijk", g, activations, atoms[:n_components])
            for g, atoms in zip(sensitivity, model.atoms_, strict=True)
        ],
        axis=2,
    )
    information = slopes.transpose(0, 2, 1) @ slopes
    diagonal = np.arange(2 * n_components)
    counts, prior_counts = (
        a.transpose(2, 0, 1).reshape(-1, 2 * n_components) for a in (shape, prior)
    )
    blur = np.sum(information[:, diagonal, diagonal] / counts)
    information[:, diagonal, diagonal] += prior_counts
    volume = np.sum(np.log(counts)) - np.sum(np.linalg.slogdet(information)[1])
    return divergence + 0.5 * float(volume - blur)


def _conclude_elbo(numbers: Sequence[int], runs: NDArray) -> Selection:
    """The candidate with the most evidence; `runs` is (candidates, starts, 2)."""
    import pandas

    evidence, bounds = runs[..., 0], runs[..., 1]
    score = evidence.max(axis=1)
    behind = score.max() - score
    table = pandas.DataFrame(
        {
            "n_components": numbers,
            "score": score,
            "standard_error": _standard_error(evidence),
            "n_runs": evidence.shape[1],
            "behind": behind,
            "behind_error": np.full(len(numbers), np.nan),
            "lower_bound": bounds.max(axis=1),
        }
    )
    best = int(np.argmin(behind))
    return _selection("elbo", table, best, behind <= _CLEAR_LEAD, "nats of evidence")


# --- hidden cells ---------------------------------------------------------------------------


def _hide(observed: NDArray, share: float, random: RandomState) -> NDArray:
    """A random share of the observed cells; of each row and column, one or more stay."""
    keep = np.zeros_like(observed)
    order = np.where(observed, random.uniform(size=observed.shape), -1.0)
    keep[np.arange(len(order)), order.argmax(axis=1)] = True
    keep[order.argmax(axis=0), np.arange(order.shape[1])] = True
    free = np.flatnonzero(observed & ~keep)
    n_hidden = min(len(free), max(1, round(share * int(observed.sum()))))
    hidden = np.zeros_like(observed)
    hidden.flat[random.choice(free, n_hidden, replace=False)] = True
    return hidden


def _scores_of_fold(problem: _Problem, n_components: int, seed: int, hidden: NDArray) -> NDArray:
    """Log-likelihoods of hidden cells at the posterior means, after a fit to the others."""
    model = _fit(problem, np.where(hidden, np.nan, problem.X), n_components, seed)
    rate0, rate1 = (rates[hidden] for rates in model.activations_ @ model.atoms_)
    return _log_density(problem.X[hidden], rate0, rate1) - np.log(problem.scale)


def _conclude_heldout(numbers: Sequence[int], scores: NDArray, n_folds: int) -> Selection:
    """The smallest candidate within one standard error of the best; `scores` is (K, cells).

    The error is that of the difference, since all candidates have the same cells hidden.
    """
    import pandas

    mean = scores.mean(axis=1)
    differences = scores[np.argmax(mean)] - scores
    behind, error = differences.mean(axis=1), _standard_error(differences)
    table = pandas.DataFrame(
        {
            "n_components": numbers,
            "score": mean,
            "standard_error": _standard_error(scores),
            "n_runs": n_folds,
            "behind": behind,
            "behind_error": error,
        }
    )
    best = int(np.flatnonzero(behind <= np.nan_to_num(error))[0])
    close = behind <= _CLEAR_ERRORS * np.where(np.isnan(error), np.inf, error)
    return _selection("heldout", table, best, close, "nats for each hidden cell")


# --- the conclusion -------------------------------------------------------------------------


def _standard_error(values: NDArray) -> NDArray:
    """Standard error of the mean over the last axis; NaN for a single value."""
    n = values.shape[-1]
    if n == 1:
        return np.full(values.shape[:-1], np.nan)
    return values.std(axis=-1, ddof=1) / np.sqrt(n)


def _selection(criterion: str, table: Any, best: int, close: NDArray, unit: str) -> Selection:
    """The result, for the row that was chosen and those that come `close` to the best."""
    numbers = table["n_components"].to_numpy()
    chosen = int(numbers[best])
    rivals = [str(k) for k, near in zip(numbers, close, strict=True) if near and k != chosen]
    clear = not rivals and len(numbers) > 1
    if len(numbers) == 1:
        verdict = f"{chosen} is the only candidate, there was nothing to compare."
    elif clear:
        lead = float(np.sort(table["behind"].to_numpy())[1])
        verdict = f"{chosen} is the clear winner, the next is {lead:.2g} {unit} behind."
    else:
        verdict = (
            f"No clear winner: {chosen} is chosen, but {', '.join(rivals)} cannot be ruled out."
        )
    if len(numbers) > 1 and best == len(numbers) - 1:
        verdict += " It is the largest candidate: try larger ones."
    return Selection(chosen, clear, verdict, table, criterion)


def _run_all(function: Callable, tasks: Sequence[tuple], n_jobs: int | None, verbose: int) -> list:
    """Results of all tasks, in their order.

    Threads do: the time is spent in compiled code that lets others run.
    """
    from joblib import Parallel, delayed

    with warnings.catch_warnings(), _bar(len(tasks), verbose) as update:
        # Learning a prior cuts fits short on purpose; gaps were the user's.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)

        def work(task: tuple) -> Any:
            result = function(*task)
            update()
            return result

        parallel = Parallel(n_jobs=count_threads(n_jobs), backend="threading")
        return list(parallel(delayed(work)(task) for task in tasks))


@contextmanager
def _bar(total: int, verbose: int) -> Iterator[Callable[[], Any]]:
    """A progress bar on fits, or nothing; yields what to call after each fit."""
    if not verbose:
        yield lambda: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc="fits", unit="fit") as bar:
        yield bar.update
