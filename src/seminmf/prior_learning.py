"""PriorLearner: priors that are learned from many matrices, at once or one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from ._estimators import validation as check
from ._estimators.notices import warn_user
from ._estimators.runs import Progress
from ._estimators.transaction import Transactional, fits, goes_on
from ._model import sharing as _sharing
from ._model.likelihoods import Dispersed
from ._model.model import PARAMETERS
from ._model.sharing import Sharing
from ._prior_learning import collection as _collection
from ._prior_learning.collection import Collection
from ._prior_learning.files import save
from ._prior_learning.learned import Learned, Plan
from ._prior_learning.posteriors import as_parameters
from ._prior_learning.prior_statistics import Maps, bounds_met
from ._prior_learning.stream import next_matrix
from .bayesian import BayesianSkellamSNMF

# Both (J, K) and (2, K, I) count the components on this axis.
_COMPONENT_AXIS = 1
# Entries of the atoms up to which correlations are kept: each pass has a matrix of their pairs.
_LARGEST = 400


class PriorLearner(Transactional, BaseEstimator):
    """Learn the prior of a Bayesian estimator from many matrices of the same kind.

    Parameters
    ----------
    estimator : BayesianSkellamSNMF
        What is fitted to each matrix. Its priors are those to start from; real data are fitted
        without a component for noise, with one dispersion for all matrices.
    activation_shape_sharing, activation_rate_sharing : {"all", "component", "entry"}, array-like \
            of int or None, default="component"
        Which activations have the same prior shape and rate: all, those of a component, none, or
        those with the same label in an array of shape (n_samples, n_components), or
        (n_components,) if it holds for every sample. None does not learn it.
    atom_sharing : {"all", "component", "entry"}, array-like of int or None, default="entry"
        The same for the shapes of the atoms; labels have the shape (2, n_components, n_features).
    learning_rate : float, "harmonic" or "annealed", default=0.02
        Weight c of a new matrix in `partial_fit`: a number in (0, 1]; "harmonic", 1 / (T + 1) after
        T matrices, of which the start counts as one; or "annealed", which learns fast, counts late
        matrices more than early ones, and ends at 0.01. For a stream, "annealed" is best.
    posterior : {"auto", "correlated", "mean-field"}, default="auto"
        What is learned from: the posterior of variational Bayes, whose mean field drops the
        correlations of a sample's activations and misleads, or one that keeps them, at the atoms
        that maximise the evidence. That one takes longer, and more so for many components and
        features: "auto" takes it up to 400 entries of the atoms.
    hyperprior : float, default=0.01
        Rate of an exponential distribution of each learned shape. It holds back shapes about which
        the matrices say little, and means nothing where they say much. 0 is the paper's rule. Where
        correlations are kept, shapes of activations that no map tells apart by samples have none.
    max_iter : int, default=100
        Most rounds of `fit`.
    tol : float, default=0.1
        `fit` has converged when a round gains less than this in the total bound. It is a logarithm:
        a gain of 0.1 is far below what tells one prior from another.
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
        correlations are kept, their total evidence. It never falls by more than `tol`.
    converged_ : bool
        After `fit`: whether it met the rule of `tol`.
    dispersion_ : float
        Unit of the learned prior: the dispersion of the first matrix or the collection, 1 for
        integers and for an estimator with `dispersion=0.0`.
    n_features_in_ : int

    Notes
    -----
    For each matrix the posterior is found with the present prior, its components are put in the
    order that the prior explains best, and the prior is replaced by the one that explains the
    posteriors best: Propositions 1 and 2 of the paper. With correlations, the activations' prior is
    found together with the atoms, and what matrices say of it adds up; what they say of the atoms
    is kept apart from the prior they were found with. A matrix that contradicts all before it is
    started again, and counts less if it still does.

    `fit` begins with one pass over the collection as over a stream.

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
    dispersion_: float
    _seed: int
    _n_samples: int
    _learned: Learned
    _private_state = ("_seed", "_n_samples", "_learned")

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
        tol: float = 0.1,
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

    @goes_on
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
        plan = self._plan(n_samples, n_features)
        if not first:
            self._check_rows(plan.maps, self._n_samples, [n_samples])
            self._check_settings(n_features, plan)
        dispersion = self._dispersion_for([X]) if first else self.dispersion_
        seed = self._draw_seed() if first else self._seed
        learned = self._start(n_samples, n_features, plan) if first else self._learned
        own = {"random_state": _seed_of(seed, learned.n_matrices)}
        estimator = self._without_noise(dispersion)
        posterior, learned = next_matrix(estimator, X, learned, plan, self.learning_rate, **own)
        if first:
            check.record_features(self, X)
            self.dispersion_, self._seed, self._n_samples = dispersion, seed, n_samples
        self._publish(learned)
        self.last_ = posterior.model
        self._warn_of_bounds(plan)
        return self

    # --- batch ------------------------------------------------------------------------------

    @fits
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
        matrices, n_features = self._check_collection(X)
        n_samples = len(matrices[0])
        plan = self._plan(n_samples, n_features)
        self._check_rows(plan.maps, n_samples, [len(matrix) for matrix in matrices])
        self._check_observations(plan.maps, len(matrices))
        seed, dispersion = self._draw_seed(), self._dispersion_for(matrices)
        collection = Collection(
            matrices,
            self._without_noise(dispersion),
            [_seed_of(seed, t) for t in range(len(matrices))],
            plan,
            self.n_jobs,
        )
        start = self._start(n_samples, n_features, plan)
        with Progress(self.max_iter, "prior", bool(self.verbose)) as progress:
            result = _collection.learn(collection, start, self.max_iter, self.tol, progress)
        if not result.converged:
            warn_user(
                f"No convergence after max_iter={self.max_iter} rounds: the total bound still "
                f"gained more than tol={self.tol} in the last one. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        check.record_features(self, matrices[0])
        self.dispersion_, self._seed, self._n_samples = dispersion, seed, n_samples
        self.lower_bounds_ = np.array(result.objectives)
        self.converged_ = result.converged
        self._publish(result.state.learned)
        self.last_ = result.state.posteriors[-1].model
        self._warn_of_bounds(plan)
        return self

    # --- checks and start -------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if not isinstance(self.estimator, BayesianSkellamSNMF):
            raise ValueError(
                "estimator must be a BayesianSkellamSNMF, which has posteriors to learn from; "
                f"found {type(self.estimator).__name__}."
            )
        self.estimator._check_parameters()
        self.estimator._check_plain("the estimator of a PriorLearner", "scale_features")
        rate = self.learning_rate
        named = isinstance(rate, str) and rate in ("harmonic", "annealed")
        if not named and not (check.is_number(rate) and 0 < float(rate) <= 1):
            raise ValueError(
                "learning_rate must be 'harmonic', 'annealed' or a number in (0, 1]; "
                f"found {rate!r}."
            )
        check.check_choice("posterior", self.posterior, ("auto", "correlated", "mean-field"))
        check.check_tolerance(self.hyperprior, name="hyperprior")
        check.check_tolerance(self.tol)
        check.check_count("max_iter", self.max_iter)
        check.check_jobs(self.n_jobs)

    def _dispersion_for(self, matrices: list[Any]) -> float:
        """The dispersion that all matrices are fitted with: given, or the mean of their own.

        Only what is to be found is looked for in the data.
        """
        if self.estimator._likelihood() is not Dispersed:
            return 1.0
        if self.estimator.dispersion != "auto":
            return float(self.estimator.dispersion)
        return _geometric_mean([clone(self.estimator)._dispersion_for(X) for X in matrices])

    def _without_noise(self, dispersion: float) -> BayesianSkellamSNMF:
        """The estimator with a dispersion that was found, and without a component for noise."""
        found = {} if self.estimator.dispersion == 0 else {"dispersion": dispersion}
        return clone(self.estimator).set_params(noise=None, posterior="mean-field", **found)

    def _check_matrix(self, X: Any, first: bool) -> tuple[int, int]:
        """Numbers of samples and features of a matrix that can be learned from."""
        estimator = clone(self.estimator)
        shape = estimator._check_data(X, fitted=False).source.shape
        if not first:
            validate_data(self, X, reset=False, skip_check_array=True)
        estimator._check_priors(*shape)
        return shape

    def _check_collection(self, X: Iterable[Any]) -> tuple[list[Any], int]:
        collection = list(X)
        if not collection:
            raise ValueError("The collection must hold at least one matrix; found none.")
        names = clone(self)
        check.record_features(names, collection[0])
        widths = [self._check_matrix(matrix, first=True)[1] for matrix in collection]
        other = next((t for t, width in enumerate(widths) if width != widths[0]), None)
        if other is not None:
            raise ValueError(
                "All matrices must have the same number of features; found "
                f"{widths[0]} in the first and {widths[other]} in number {other + 1}."
            )
        for matrix in collection[1:]:
            validate_data(names, matrix, reset=False, skip_check_array=True)
        return collection, widths[0]

    def _check_observations(self, maps: Maps, n_matrices: int) -> None:
        """Refuse labels that are seen once, unless a hyperprior holds them, and then warn."""
        lonely = [
            name
            for name, labels in zip(PARAMETERS, _fields(maps), strict=True)
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
        warn_user(f"{reason}. The hyperprior alone holds them.")

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
        given = self.estimator._check_priors(n_samples, n_features)
        n_rows = max(
            len(shape if shape is not None else given.activations.shape),
            len(rate if rate is not None else given.activations.rate),
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

    def _check_settings(self, n_features: int, plan: Plan) -> None:
        """Refuse settings that do not go on with what has been learned."""
        for name in self.estimator._kept_parameters:
            kept, now = (getattr(model, name) for model in (self.estimator_, self.estimator))
            if now != kept and not (name == "dispersion" and now == "auto"):
                raise ValueError(
                    f"The estimator's {name} must stay what it was when the stream began, "
                    f"{kept!r}; found {now!r}."
                )
        start = self._start(self._n_samples, n_features, plan)
        shapes = [
            [part.shape for part in (*known.statistics[1:3], *known.potential)]
            for known in (start, self._learned)
        ]
        if shapes[0] != shapes[1]:
            raise ValueError(
                "The sharing maps and the posterior must stay what they were when the stream "
                "began; clone the learner to begin another."
            )

    def _tells_samples_apart(self, maps: Maps) -> bool:
        """Whether labels or the prior that is learned have a row for each sample."""
        rows = [len(labels) for labels in _fields(maps)[:2] if labels is not None]
        if hasattr(self, "_learned"):
            rows.append(self._learned.prior.activations.n_rows)
        return max(rows, default=1) > 1

    def _check_rows(self, maps: Maps, n_samples: int, lengths: list[int]) -> None:
        other = next((length for length in lengths if length != n_samples), None)
        if other is not None and self._tells_samples_apart(maps):
            raise ValueError(
                "Activation sharing that tells samples apart needs matrices with the same number "
                f"of samples; found {n_samples} and {other}."
            )

    def _plan(self, n_samples: int, n_features: int) -> Plan:
        """What is to be learned from matrices of this size."""
        size = 2 * self.estimator.n_components * n_features
        keeps = self.posterior == "correlated" or (self.posterior == "auto" and size <= _LARGEST)
        return Plan(self._maps(n_samples, n_features), keeps, float(self.hyperprior))

    def _start(self, n_samples: int, n_features: int, plan: Plan) -> Learned:
        prior = self.estimator._check_priors(n_samples, n_features)
        return Learned.nothing(prior, (n_samples, self.estimator.n_components, n_features), plan)

    def _draw_seed(self) -> int:
        return int(check_random_state(self.estimator.random_state).randint(2**31 - 1))

    def _publish(self, learned: Learned) -> None:
        """Set what has been learned."""
        self._learned = learned
        self.n_matrices_ = learned.n_matrices
        estimator = self._without_noise(self.dispersion_)
        self.estimator_ = estimator.set_params(**as_parameters(learned.prior))

    def _warn_of_bounds(self, plan: Plan) -> None:
        """Say what met a bound, when all else is done."""
        for note in bounds_met(self._learned.prior, plan.maps):
            warn_user(note)

    def save(self, path: Any) -> None:
        """Write the learner to a file that `seminmf.load` reads, to go on with its stream.

        `last_` is not written.

        Parameters
        ----------
        path : str or path-like
            File to write, in the safetensors format.
        """
        check_is_fitted(self)
        save(self, path)


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


def _seed_of(seed: int, number: int) -> int:
    """A seed for each matrix, which a learner that was saved and loaded finds again."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))
