"""PriorLearner: priors that are learned from many matrices, at once or one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from . import _sharing
from . import _validation as check
from ._inference import em, evidence
from ._inference.evidence import History
from ._inference.hyperparameters import gamma_shape
from ._inference.prior_statistics import (
    Expectations,
    Maps,
    Statistics,
    best_order,
    update_prior,
)
from ._inference.problem import Prior
from ._progress import Progress
from ._sharing import Sharing
from .bayesian import BayesianSkellamSNMF

# Both (J, K) and (2, K, I) count the components on this axis.
_COMPONENT_AXIS = 1
# The rate at which an annealed learner goes on.
_LASTING_RATE = 0.02
# Entries of the atoms up to which correlations are kept: each pass has a matrix of their pairs.
_LARGEST = 400
# Nothing of the activations' prior is found together with the atoms.
_NO_MAPS = Maps(None, None, None)


class Learned(NamedTuple):
    """What a learner knows.

    Attributes
    ----------
    prior : Prior
        The prior that has been learned.
    statistics : Statistics
        What it was learned from.
    n_matrices : int
        Matrices that have been seen, without the start, which counts as one more.
    weight : float
        Matrices that the statistics stand for: 1 / Σ of the squared weights of those in them.
    """

    prior: Prior
    statistics: Statistics
    n_matrices: int
    weight: float


class Posterior(NamedTuple):
    """The fit to one matrix, and its bound or evidence."""

    model: BayesianSkellamSNMF
    expected: Expectations
    objective: float


class PriorLearner(BaseEstimator):
    """Learn the prior of a Bayesian estimator from many matrices of the same kind.

    Parameters
    ----------
    estimator : BayesianSkellamSNMF
        What is fitted to each matrix. Its priors are those to start from.
    activation_shape_sharing, activation_rate_sharing : {"all", "component", "entry"}, array-like \
            of int or None, default="component"
        Which activations have the same prior shape and rate: all, those of a component, none, or
        those with the same label in an array of shape (n_samples, n_components), or
        (n_components,) if it holds for every sample. None does not learn it.
    atom_sharing : {"all", "component", "entry"}, array-like of int or None, default="entry"
        The same for the shapes of the atoms; labels have the shape (2, n_components, n_features).
    learning_rate : float, "harmonic" or "annealed", default=0.02
        Weight c of a new matrix in `partial_fit`: a number in (0, 1]; 1 / (T + 1) after T matrices,
        of which the start counts as one; or the larger of that and 0.02, which learns fast at
        first and goes on to forget.
    posterior : {"auto", "correlated", "mean-field"}, default="auto"
        What is learned from: the posterior of variational Bayes, whose mean field drops the
        correlations of a sample's activations and misleads, or one that keeps them, at the atoms
        that maximise the evidence. That one takes longer, and more so for many components and
        features: "auto" takes it up to 400 entries of the atoms.
    hyperprior : float, default=0.01
        Rate of an exponential distribution of each learned shape. It holds back shapes about which
        the matrices say little, and means nothing where they say much. 0 is the paper's rule.
    max_iter : int, default=100
        Most rounds of `fit`.
    tol : float, default=1e-5
        `fit` has converged when a round gains less than `tol` times the size of the total bound.
    n_jobs : int or None, default=None
        Matrices that `fit` works on at the same time. None and -1 are all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    estimator_ : BayesianSkellamSNMF
        Not fitted, with the learned prior.
    last_ : BayesianSkellamSNMF
        Fitted to the last matrix, with the prior before that matrix. Its posterior is the one that
        was learned from; its components are in the order of the prior.
    n_matrices_ : int
        Number of matrices seen.
    lower_bounds_ : ndarray
        After `fit`: total bound of all matrices after each round, with the hyperprior; where
        correlations are kept, their total evidence, by Laplace's method.
    converged_ : bool
        After `fit`: whether it met the rule of `tol`.
    scale_ : float
        Unit of the learned prior, that of the first matrix or the collection.
    n_features_in_ : int

    Notes
    -----
    For each matrix the variational posterior is found with the present prior, its components are
    put in the order that the prior explains best, and the prior is replaced by the one that
    explains the posteriors best: Propositions 1 and 2 of the paper.

    Examples
    --------
    >>> from seminmf import BayesianSkellamSNMF, PriorLearner, sample_skellam_snmf
    >>> stream = [
    ...     sample_skellam_snmf(
    ...         200, 4, 1, activation_shape=9, activation_rate=0.03, random_state=t
    ...     )[0]
    ...     for t in range(5)
    ... ]
    >>> learner = PriorLearner(BayesianSkellamSNMF(1, likelihood="integer"), atom_sharing=None)
    >>> for X in stream:
    ...     learner = learner.partial_fit(X)
    >>> learner.n_matrices_
    5
    >>> round(float(learner.fit(stream).estimator_.activation_shape_prior.item()), 1)
    8.4
    """

    # What fixes how a stream goes on, besides what has been learned.
    scale_: float
    _seed: int
    _n_samples: int
    _learned: Learned

    def __init__(
        self,
        estimator: BayesianSkellamSNMF,
        *,
        activation_shape_sharing: Sharing | None = "component",
        activation_rate_sharing: Sharing | None = "component",
        atom_sharing: Sharing | None = "entry",
        learning_rate: float | str = 0.02,
        posterior: str = "auto",
        hyperprior: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.activation_shape_sharing = activation_shape_sharing
        self.activation_rate_sharing = activation_rate_sharing
        self.atom_sharing = atom_sharing
        self.learning_rate = learning_rate
        self.posterior = posterior
        self.hyperprior = hyperprior
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- online -----------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any = None) -> PriorLearner:
        """Fit one more matrix with the present prior, and learn from it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        y : None
            Not used.

        Returns
        -------
        self
            Nothing has changed if X is refused.
        """
        self._check_parameters()
        first = not hasattr(self, "_learned")
        n_samples, n_features = self._check_matrix(X, first)
        maps = self._maps(n_samples, n_features)
        if not first:
            self._check_rows(maps, self._n_samples, [n_samples])
        scale = self.estimator._scale_for(X) if first else self.scale_
        seed = self._draw_seed() if first else self._seed
        learned = self._start(n_samples, n_features, maps) if first else self._learned
        posterior = self._posterior(X, learned, maps, scale, seed)
        learned, notes = self._learn_from(learned, posterior, maps)
        if first:
            check.record_features(self, X)
            self.scale_, self._seed, self._n_samples = scale, seed, n_samples
        self._publish(learned, notes)
        self.last_ = posterior.model
        return self

    def _learn_from(
        self, learned: Learned, posterior: Posterior, maps: Maps
    ) -> tuple[Learned, tuple[str, ...]]:
        """The paper's online rule: blend the statistics, and take the best prior for them."""
        rate, atom_rate = self._rates(learned.n_matrices)
        new = Statistics.of(posterior.expected, maps)
        statistics = learned.statistics.blend(new, rate, atom_rate)
        weight = 1 / ((1 - atom_rate) ** 2 / learned.weight + atom_rate**2)
        update = update_prior(learned.prior, statistics, maps, self.hyperprior / weight)
        return Learned(update.prior, statistics, learned.n_matrices + 1, weight), update.notes

    def _rates(self, n_matrices: int) -> tuple[float, float]:
        """Weight of the next matrix for the activations' prior, and for the atoms'."""
        harmonic = 1 / (n_matrices + 2)
        if self.learning_rate == "harmonic":
            return harmonic, harmonic
        if self.learning_rate == "annealed":
            # One matrix has many activations, and a start that is forgotten misleads nobody; but
            # it has each atom once, and needs the start beside it.
            return max(1 / (n_matrices + 1), _LASTING_RATE), max(harmonic, _LASTING_RATE)
        return float(self.learning_rate), float(self.learning_rate)

    # --- batch ------------------------------------------------------------------------------

    def fit(self, X: Iterable[Any], y: Any = None) -> PriorLearner:
        """Learn from a collection: posteriors and prior in turn, until the total bound converges.

        Parameters
        ----------
        X : iterable of array-likes of shape (n_samples, n_features)
            Matrices, which may differ in their number of samples where no sharing map tells
            samples apart.
        y : None
            Not used.

        Returns
        -------
        self
        """
        self._check_parameters()
        collection, n_features = self._check_collection(X)
        maps = self._common_maps(collection, n_features)
        n_samples = len(collection[0])
        self._check_observations(maps, len(collection))
        scale = _geometric_mean([self.estimator._scale_for(matrix) for matrix in collection])
        seed = self._draw_seed()
        start = self._start(n_samples, n_features, maps)
        with Progress(self.max_iter, "prior", bool(self.verbose)) as progress:
            rounds = self._rounds(collection, start, maps, scale, seed, progress)
        check.record_features(self, collection[0])
        self.scale_, self._seed, self._n_samples = scale, seed, n_samples
        self.lower_bounds_, self.converged_ = np.array(rounds.bounds), rounds.converged
        self._publish(rounds.learned, rounds.notes)
        self.last_ = rounds.posteriors[-1].model
        return self

    def _rounds(
        self,
        collection: list[Any],
        learned: Learned,
        maps: Maps,
        scale: float,
        seed: int,
        progress: Progress,
    ) -> Rounds:
        """Fit all matrices with the present prior, learn from them, and again."""
        posteriors = self._posteriors(collection, learned.prior, scale, seed)
        posteriors = self._in_order(posteriors, learned, maps)
        correlated = self._keeps_correlations(posteriors[0].model.n_features_in_)
        if correlated:
            # Each matrix finds its own prior first, which is near the common one.
            posteriors = self._refined(collection, posteriors, learned.prior, maps)
        bounds = [] if correlated else [self._total_bound(posteriors, learned.prior, maps)]
        n_matrices = len(collection)
        for _ in range(self.max_iter):
            statistics = Statistics.mean([Statistics.of(p.expected, maps) for p in posteriors])
            update = update_prior(learned.prior, statistics, maps, self.hyperprior / n_matrices)
            learned = Learned(update.prior, statistics, n_matrices, float(n_matrices))
            if correlated:
                posteriors = self._refined(collection, posteriors, learned.prior, _NO_MAPS)
            else:
                posteriors = self._posteriors(collection, learned.prior, scale, seed, posteriors)
            bounds.append(self._total_bound(posteriors, learned.prior, maps))
            progress.update(bounds[-1])
            if len(bounds) > 1 and bounds[-1] - bounds[-2] <= self.tol * abs(bounds[-1]):
                return Rounds(learned, posteriors, bounds, True, update.notes)
        warnings.warn(
            f"No convergence after max_iter={self.max_iter} rounds: the total bound still gained "
            f"more than tol={self.tol} of its size in the last one. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
        return Rounds(learned, posteriors, bounds, False, update.notes)

    def _posteriors(
        self,
        collection: list[Any],
        prior: Prior,
        scale: float,
        seed: int,
        before: list[Posterior] | None = None,
    ) -> list[Posterior]:
        """Variational posteriors of all matrices, from those before if there are any."""
        starts = [None] * len(collection) if before is None else [p.model for p in before]
        return self._parallel(
            partial(self._fit_one, matrix, prior, scale, _seed_of(seed, t), start, n_jobs=1)
            for t, (matrix, start) in enumerate(zip(collection, starts, strict=True))
        )

    def _refined(
        self, collection: list[Any], before: list[Posterior], prior: Prior, maps: Maps
    ) -> list[Posterior]:
        """Posteriors of all matrices with their correlations."""
        return self._parallel(
            partial(_with_correlations, matrix, posterior.model, prior, maps, None)
            for matrix, posterior in zip(collection, before, strict=True)
        )

    def _parallel(self, jobs: Iterable[Callable[[], Posterior]]) -> list[Posterior]:
        from joblib import Parallel, delayed

        # Threads: the kernels release Python's lock, and nothing has to be copied.
        n_jobs = -1 if self.n_jobs is None else self.n_jobs
        return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(job)() for job in jobs)

    def _in_order(
        self, posteriors: list[Posterior], learned: Learned, maps: Maps
    ) -> list[Posterior]:
        """Posteriors with their components in one order, which grows from the first matrix on."""
        ordered: list[Posterior] = []
        prior = learned.prior
        for posterior in posteriors:
            ordered.append(_ordered(posterior, best_order(prior, posterior.expected)))
            parts = [learned.statistics, *(Statistics.of(p.expected, maps) for p in ordered)]
            weight = self.hyperprior / len(parts)
            prior = update_prior(prior, Statistics.mean(parts), maps, weight).prior
        return ordered

    def _total_bound(self, posteriors: list[Posterior], prior: Prior, maps: Maps) -> float:
        """Sum of the matrices' bounds, and the logarithm of the hyperprior but for a constant."""
        held = [
            (maps.activation_shape, prior.activation_shape),
            (maps.atom_shape, prior.atom_shape),
        ]
        shapes = sum(
            float(_label_values(values, labels).sum())
            for labels, values in held
            if labels is not None
        )
        return sum(p.objective for p in posteriors) - self.hyperprior * shapes

    # --- one matrix -------------------------------------------------------------------------

    def _posterior(
        self, X: Any, learned: Learned, maps: Maps, scale: float, seed: int
    ) -> Posterior:
        """The fit to one matrix; started again if another order of its components is better."""
        own = _seed_of(seed, learned.n_matrices)
        posterior = self._fit_one(X, learned.prior, scale, own)
        order = best_order(learned.prior, posterior.expected)
        if not np.array_equal(order, np.arange(len(order))):
            start = _ordered(posterior, order).model
            posterior = self._fit_one(X, learned.prior, scale, own, start)
        if not self._keeps_correlations(posterior.model.n_features_in_):
            return posterior
        rate, _ = self._rates(learned.n_matrices)
        # The start is no matrix: the first one speaks for itself.
        known = learned.n_matrices > 0
        history = History(learned.statistics, (1 - rate) / rate) if known else None
        return _with_correlations(X, posterior.model, learned.prior, maps, history)

    def _keeps_correlations(self, n_features: int) -> bool:
        size = 2 * self.estimator.n_components * n_features
        return self.posterior == "correlated" or (self.posterior == "auto" and size <= _LARGEST)

    def _fit_one(
        self,
        X: Any,
        prior: Prior,
        scale: float,
        seed: int,
        start: BayesianSkellamSNMF | None = None,
        **parameters: Any,
    ) -> Posterior:
        """A copy of the estimator with this prior, fitted to X."""
        model = clone(self.estimator)
        model.set_params(**_as_parameters(prior), scale=scale, random_state=seed, **parameters)
        if start is not None:
            model.set_params(init="random", n_init=1)
            model.fit(X, atom_shape=start.atom_shape_, activation_shape=start.activation_shape_)
        else:
            if _tells_apart(prior):
                model.set_params(init="prior", n_init=1)
            model.fit(X)
        if model.stop_reason_ == "interrupted":
            raise KeyboardInterrupt
        return Posterior(model, _expectations(model), model.lower_bound_)

    # --- checks and start -------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if not isinstance(self.estimator, BayesianSkellamSNMF):
            raise ValueError(
                "estimator must be a BayesianSkellamSNMF, which has posteriors to learn from; "
                f"found {type(self.estimator).__name__}."
            )
        self.estimator._check_parameters()
        rate = self.learning_rate
        number = isinstance(rate, (int, float, np.number)) and not isinstance(rate, bool)
        named = isinstance(rate, str) and rate in ("harmonic", "annealed")
        if not named and not (number and 0 < float(rate) <= 1):
            raise ValueError(
                "learning_rate must be 'harmonic', 'annealed' or a number in (0, 1]; "
                f"found {rate!r}."
            )
        check.check_choice("posterior", self.posterior, ("auto", "correlated", "mean-field"))
        check.check_tolerance(self.hyperprior, name="hyperprior")
        check.check_tolerance(self.tol)
        check.check_count("max_iter", self.max_iter)
        check.check_jobs(self.n_jobs)

    def _check_matrix(self, X: Any, first: bool) -> tuple[int, int]:
        """Numbers of samples and features of a matrix that can be learned from."""
        estimator = clone(self.estimator)
        shape = estimator._check_data(X, fitted=False).X.shape
        if not first:
            validate_data(self, X, reset=False, skip_check_array=True)
        check.check_prior(estimator, *shape, positive_rate=True)
        return shape

    def _check_collection(self, X: Iterable[Any]) -> tuple[list[Any], int]:
        collection = list(X)
        if not collection:
            raise ValueError("The collection must hold at least one matrix; found none.")
        widths = [self._check_matrix(matrix, first=True)[1] for matrix in collection]
        other = next((t for t, width in enumerate(widths) if width != widths[0]), None)
        if other is not None:
            raise ValueError(
                "All matrices must have the same number of features; found "
                f"{widths[0]} in the first and {widths[other]} in number {other + 1}."
            )
        return collection, widths[0]

    def _check_observations(self, maps: Maps, n_matrices: int) -> None:
        """Refuse labels that are seen once, unless a hyperprior holds them, and then warn."""
        lonely = [
            name
            for name, labels in zip(Prior._fields, _fields(maps), strict=True)
            if labels is not None
            and "shape" in name
            and len(labels) != 1
            and n_matrices * np.bincount(labels.ravel()).min() < 2
        ]
        if not lonely:
            return
        names = " and ".join(f"{name}_prior" for name in lonely)
        reason = (
            f"{names} has labels with a single observation, about which {n_matrices} matrix says "
            "nothing: share more coarsely or learn from more matrices"
        )
        if self.hyperprior == 0:
            raise ValueError(f"{reason}, or set hyperprior above 0.")
        warnings.warn(f"{reason}. The hyperprior alone holds them.", UserWarning, stacklevel=3)

    def _maps(self, n_samples: int, n_features: int) -> Maps:
        """The sharing maps for matrices of this size, with the rows they need."""
        n_components = self.estimator.n_components
        activations = (n_samples, n_components)
        shape = _activation_labels(
            "activation_shape_sharing", self.activation_shape_sharing, activations
        )
        rate = _activation_labels(
            "activation_rate_sharing", self.activation_rate_sharing, activations
        )
        given = check.check_prior(self.estimator, n_samples, n_features, positive_rate=True)
        n_rows = max(
            len(shape if shape is not None else given.activation_shape),
            len(rate if rate is not None else given.activation_rate),
        )
        rows = (n_rows, n_components)
        return Maps(
            None if shape is None else np.broadcast_to(shape, rows),
            None if rate is None else np.broadcast_to(rate, rows),
            None
            if self.atom_sharing is None
            else _sharing.labels(
                self.atom_sharing,
                (2, n_components, n_features),
                _COMPONENT_AXIS,
                name="atom_sharing",
            ),
        )

    def _common_maps(self, collection: list[Any], n_features: int) -> Maps:
        lengths = [len(matrix) for matrix in collection]
        maps = self._maps(lengths[0], n_features)
        self._check_rows(maps, lengths[0], lengths)
        return maps

    @staticmethod
    def _check_rows(maps: Maps, n_samples: int, lengths: list[int]) -> None:
        rows = [len(labels) for labels in _fields(maps)[:2] if labels is not None]
        other = next((length for length in lengths if length != n_samples), None)
        if max(rows, default=1) > 1 and other is not None:
            raise ValueError(
                "Activation sharing that tells samples apart needs matrices with the same number "
                f"of samples; found {n_samples} and {other}."
            )

    def _start(self, n_samples: int, n_features: int, maps: Maps) -> Learned:
        """The prior to start from counts as one matrix whose posterior it is."""
        prior = check.check_prior(self.estimator, n_samples, n_features, positive_rate=True)
        n_components = self.estimator.n_components
        shape, rate = (
            np.broadcast_to(part, (n_samples, n_components))
            for part in (prior.activation_shape, prior.activation_rate)
        )
        atoms = np.broadcast_to(prior.atom_shape, (2, n_components, n_features))
        statistics = Statistics.of(Expectations.of(shape, rate, atoms), maps)
        return Learned(prior, statistics, 0, 1.0)

    def _draw_seed(self) -> int:
        return int(check_random_state(self.estimator.random_state).randint(2**31 - 1))

    def _publish(self, learned: Learned, notes: tuple[str, ...]) -> None:
        """Set what has been learned, and say what met a bound."""
        self._learned = learned
        self.n_matrices_ = learned.n_matrices
        self.estimator_ = clone(self.estimator).set_params(
            **_as_parameters(learned.prior), scale=self.scale_
        )
        for note in notes:
            warnings.warn(note, UserWarning, stacklevel=3)

    def save(self, path: Any) -> None:
        """Write the learner to a file that `seminmf.load` reads, to go on with its stream.

        `last_` is not written.

        Parameters
        ----------
        path : str or path-like
            File to write, in the safetensors format.
        """
        from .io import save

        check_is_fitted(self)
        save(self, path)


class Rounds(NamedTuple):
    """How `fit` went."""

    learned: Learned
    posteriors: list[Posterior]
    bounds: list[float]
    converged: bool
    notes: tuple[str, ...]


def _fields(maps: Maps) -> tuple[NDArray | None, ...]:
    return maps.activation_shape, maps.activation_rate, maps.atom_shape


def _activation_labels(
    name: str, sharing: Sharing | None, shape: tuple[int, int]
) -> NDArray | None:
    """Labels (R, K): one row where all samples share theirs, or else a row for each."""
    if sharing is None:
        return None
    by_sample = isinstance(sharing, str) and sharing == "entry"
    if not isinstance(sharing, str):
        by_sample = np.ndim(sharing) == 2
        sharing = np.atleast_2d(np.asarray(sharing))
    return _sharing.labels(
        sharing, shape if by_sample else (1, shape[1]), _COMPONENT_AXIS, name=name
    )


def _as_parameters(prior: Prior) -> dict[str, NDArray]:
    return {f"{name}_prior": value for name, value in prior._asdict().items()}


def _tells_apart(prior: Prior) -> bool:
    """Whether the prior differs between components."""
    return any(
        part.shape[_COMPONENT_AXIS] > 1 and not np.allclose(part, part[:, :1], rtol=1e-3)
        for part in prior
    )


def _expectations(model: BayesianSkellamSNMF) -> Expectations:
    """Expectations in the unit of the prior."""
    rate = model.activation_rate_.astype(np.float64) * model.dispersion_
    return Expectations.of(model.activation_shape_, rate, model.atom_shape_)


def _with_correlations(
    X: Any, model: BayesianSkellamSNMF, prior: Prior, maps: Maps, history: History | None
) -> Posterior:
    """The posterior at the atoms that maximise the evidence; it replaces the model's."""
    data = model._check_data(X)
    with model._problem(data.X, prior, model.dispersion_) as problem:
        start = em.State(model.activations_ / problem.likelihood.unit, model.atoms_)
        found = evidence.maximise(problem, maps, history, start)
    expected = found.expected
    dtype = model.atoms_.dtype
    shape = gamma_shape(np.log(expected.activations) - expected.log_activations)
    model.activations_ = (expected.activations * model.dispersion_).astype(dtype)
    model.activation_shape_ = shape.astype(dtype)
    model.activation_rate_ = (shape / model.activations_).astype(dtype)
    model.atoms_, model.atom_shape_ = found.atoms.astype(dtype), found.atom_shape.astype(dtype)
    return Posterior(model, expected, found.evidence)


def _ordered(posterior: Posterior, order: NDArray) -> Posterior:
    """The posterior with its components in another order."""
    model = posterior.model
    for name in ("activations_", "activation_shape_", "activation_rate_"):
        setattr(model, name, getattr(model, name)[:, order])
    model.atoms_, model.atom_shape_ = model.atoms_[:, order], model.atom_shape_[:, order]
    return posterior._replace(expected=posterior.expected.ordered(order))


def _label_values(values: NDArray, labels: NDArray) -> NDArray:
    """The value of each label, of which all cells have the same."""
    found = np.zeros(int(labels.max()) + 1)
    found[labels] = values
    return found


def _seed_of(seed: int, number: int) -> int:
    """A seed for each matrix, which a learner that was saved and loaded finds again."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))
