"""BayesianSkellamSNMF: semi-NMF with full posteriors, by variational Bayes."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_random_state

from ._algorithms import em, minibatch, vb
from ._algorithms.acceleration import accelerate
from ._algorithms.activations import (
    posterior_samples,
    refine_posterior,
    solve_maximum,
    solve_posterior,
    solve_roughly,
)
from ._algorithms.choice import choose_algorithm
from ._algorithms.loop import UNRECORDED, Result, Stopping
from ._algorithms.problem import Problem
from ._algorithms.start import METHODS as STARTS
from ._algorithms.start import start
from ._estimators import validation as check
from ._estimators.checkpoint import unlocks_checkpoint
from ._estimators.files import COMMON_SCALARS, TRACE, ArrayField, FittedFields
from ._estimators.noise import Given
from ._estimators.noisy import NOISE_ARRAYS, NOISE_SCALARS, before_dispersion
from ._estimators.notices import warn_user
from ._estimators.runs import Runner, best_run
from ._estimators.sampled import DRAW_ARRAYS, DRAW_SCALARS, SampledSkellamSNMF
from ._estimators.transaction import fits
from ._model.likelihoods import takes_integers
from ._model.model import LengthPrice, Model, Priors
from ._model.priors import normalise
from .skellam import SkellamSNMF

# How far the point is fitted that the posterior starts from, with init="map".
_MODE_TOLERANCE = 1e-4
# The prior's shape of atoms of a sign that components do not have: none ever comes from it.
_NO_SHAPE = 1e-30


def _before_dispersion(given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a file from when the paper's model was fitted to X / scale."""
    if "scale" not in given:
        return given
    scale = given.pop("scale")
    if scale != 1.0 and not takes_integers(given.get("likelihood")):
        warn_user(
            f"The file is of a fit with scale={scale!r}, which BayesianSkellamSNMF has no more: "
            "the model answers as before, but its fit cannot be repeated."
        )
    return {"activation_rate_prior": 1e-3, "n_init": 1} | before_dispersion(given)


class BayesianSkellamSNMF(SampledSkellamSNMF):
    """Semi-nonnegative matrix factorization with a posterior for everything.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, K.
    likelihood : {"real", "integer"}, default="real"
        "real" for any numbers, "integer" for counts and differences of counts (M = 1 of the paper,
        a dispersion of 1).
    dispersion : "auto" or float, default="auto"
        φ = 1 / M, in the unit of X: a component adds φ Σ|W| λ to the variance of a cell. "auto" is
        such that this is small against the noise. 0.0 is the paper's M = ∞, whose posterior depends
        on the unit of X.
    noise : {"auto", "feature", "same", None}, default="auto"
        Noise that no component explains, as a component of its own, equal in both signs: a level
        for each feature, the same for all, or none. "auto" is "feature", and None for integers, for
        a dispersion of 0.0 and where `fit` is given `cell_noise`. The levels are found before the
        posterior, as those of `SkellamSNMF` are, and taken as known by it.
    positive_components : bool, default=False
        Whether components are at least 0. Noise may then make X negative, the components do not.
    fit_intercept : bool, default=False
        Whether a number for each feature is added to activations · components. It needs noise.
    scale_features : bool, default=False
        Whether each feature is divided by its size before the fit, so that all count alike: by its
        root mean square, or with `fit_intercept` by its standard deviation. What comes out is in
        the unit of X; but sums over features, which are `activations_`, `amounts_` and `r2_`, are
        of scaled ones, and so are `dispersion` and the priors. With noise by feature components
        and fills hardly change; clusters and amounts do.
    activation_shape_prior : "auto", float or array-like, default="auto"
        Shape of the activations' gamma prior: a number, or broadcasting to
        (n_samples, n_components). "auto" learns one for each component where the posterior is
        correlated, and is 1 for a mean field, under which a shape cannot be learned.
    activation_rate_prior : "auto", float or array-like, default="auto"
        Its rate, above 0, for activations in units of the dispersion, or of X if that is 0. "auto"
        is learned with the shape where the posterior is correlated. For a mean field it is in
        proportion to a component's length in units of the noise, by a factor that is found with
        the noise; without noise it is 1e-3.
    atom_shape_prior : "auto", float or array-like, default="auto"
        Shape of the atoms' Dirichlet prior: a number, or broadcasting to
        (2, n_components, n_features). "auto" is 1 for a mean field. Where the posterior is
        correlated it is learned for integers; for real numbers no direction of a component is
        preferred, in units of the noise.
    posterior : {"auto", "correlated", "mean-field"}, default="auto"
        "correlated" draws from the joint posterior of activations, components and noise, by Gibbs
        sampling: what the data leave open is then part of the intervals. "mean-field" is the
        paper's VBEM, in which all are independent, and intervals too narrow. "auto" is
        "correlated" where that can be had: for dense data in memory, integers or real numbers in a
        model with noise, without batches.
    acceleration : {"squarem", "parabolic", None}, default="squarem"
        How VBEM is extrapolated. An iteration is then a cycle of three or four passes over the
        data, of which two are the paper's iterations; the bound never falls. With None an
        iteration is the paper's.
    init : {"auto", "random", "kmeans", "svd", "prior", "map"}, default="auto"
        Start values, where `fit` is not given any. "auto" is of several kinds where noise is sought
        (samples, means of samples that point the same way, random numbers), and else "random".
        "map" is the maximum a posteriori, found by Newton's method from a random start.
    n_init : int or "auto", default="auto"
        Number of starts, of which the best is kept. "auto" is 10 where noise is sought, which costs
        little, and else 1.
    max_iter : int, default=3000
        Most iterations of a run, or sweeps of the sampler, which takes 300 to 2500 of them.
    tol : float, default=1e-4
        A run of VBEM has converged when the bound gained less than `tol` times its size over the
        last 20 iterations. 0 never stops before `max_iter`.
    check_integer : bool, default=True
        Whether likelihood "integer" refuses data that are no integers.
    random_state : int, RandomState or None, default=None
        Source of the start values. The same seed gives the same bits, whatever `n_jobs`.
    n_jobs : int or None, default=None
        Threads. None and -1 are all cores; small problems use one in any case.
    verbose : int, default=0
        1 shows a progress bar.
    sparse_zeros : {"missing", "observed"}, default="missing"
        What cells are that a sparse X does not store: gaps, or data that are 0.
    batch_size : int or None, default=None
        Samples of a batch. `fit` then learns from one batch after the other, and an iteration is an
        epoch over all of them. None looks at all samples at once.
    total_samples : int or None, default=None
        For `partial_fit`: how many samples there are in all, against which the atoms' prior counts.
        None counts those that have been seen.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior means of the signed components.
    atoms_ : ndarray of shape (2, n_components, n_features)
        Posterior means of their positive and negative parts.
    activations_ : ndarray of shape (n_samples, n_components)
        Posterior means of the activations, in the unit of X.
    amounts_ : ndarray of shape (n_samples, n_components)
        What each component puts into each sample: activation × Σ |component|, of their means.
    r2_ : float
        R² of the observed cells, 1 − Σ (x − activations · components)² / Σ x²; `r2` has more on it.
    r2_drop_ : ndarray of shape (n_components,)
        What R² falls by when a component is taken out and the others stay as they are.
    posterior_ : {"correlated", "mean-field"}
        Which posterior the fit has.
    atom_shape_ : ndarray of shape (2, n_components, n_features)
        Dirichlet posterior of the atoms of a mean field. Of draws, the Dirichlet distributions that
        have their means and total variance.
    activation_shape_, activation_rate_ : ndarrays of shape (n_samples, n_components)
        Gamma posteriors of the activations of a mean field, in the unit of X. Of draws, the gamma
        distributions that have their means and variances.
    lower_bound_ : float
        Normalised evidence lower bound (ELBO) of X, in units of the dispersion, of a mean field. Of
        draws, their mean log-likelihood, which is no bound.
    lower_bounds_ : ndarray of shape (n_iter_ + 1,)
        Its values from the start to the end; the log-likelihood after each sweep.
    n_iter_ : int
        Iterations of the best run, and batches since; sweeps of the sampler.
    converged_ : bool
        Whether that run met the rule of `tol`; whether both halves of the draws have the same
        components.
    stop_reason_ : {"tolerance", "max_iter", "interrupted"}
        Why that run ended: by the rule of `tol`, for want of iterations, or by Ctrl-C. Draws that
        have not settled count as "max_iter".
    dispersion_ : float
        The dispersion, in the unit of X; 1 for integers and for `dispersion=0.0`.
    noise_ : ndarray of shape (n_features,)
        Standard deviation of each feature's noise, in the unit of X; 0 without a component for it.
    intercept_ : ndarray of shape (n_features,)
        What is added to activations · components; 0 without `fit_intercept`.
    activation_shape_prior_, activation_rate_prior_ : ndarrays of shape (n_components,)
        The prior that was used, or the mean of what was learned; (n_samples, n_components) if each
        sample was given its own.
    atom_shape_prior_ : ndarray of shape (2, n_components, n_features)
        The prior of the atoms that was used; 1 where the posterior is correlated.
    component_stability_ : ndarray of shape (n_components,)
        Mean cosine of each component with its match in the other starts; NaN for a single start.
    stability_ : float
        Its mean.
    n_same_starts_ : int
        Number of starts that found the components of the best, with a cosine of 0.95 or more.
    feature_scale_ : ndarray of shape (n_features,)
        What features were divided by for the fit; 1 without `scale_features`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has feature names.

    Notes
    -----
    The page on intervals in the documentation has what they hold of known truths: those of a
    correlated posterior about what they say, those of a mean field far less.

    References
    ----------
    B. Fuentes and G. Richard, "Probabilistic semi-nonnegative matrix factorization: a Skellam-based
    framework", 2021.

    Examples
    --------
    >>> from seminmf import BayesianSkellamSNMF, sample_skellam_snmf
    >>> X, _, _ = sample_skellam_snmf(100, 5, 2, random_state=0)
    >>> model = BayesianSkellamSNMF(2, likelihood="integer", random_state=0).fit(X)
    >>> lower, upper = model.interval(0.9).activations
    >>> bool((lower < model.activations_).all() and (model.activations_ < upper).all())
    True
    """

    _starts = (*STARTS, "map")
    _needs_rate = True
    _dispersion_share = 0.05
    _fitted_fields = FittedFields(
        arrays={
            "atoms_": ArrayField("2KI"),
            "activations_": ArrayField("JK"),
            "atom_shape_": ArrayField("2KI", "positive"),
            "activation_shape_": ArrayField("JK", "positive"),
            "activation_rate_": ArrayField("JK", "positive"),
            "lower_bounds_": TRACE,
            **NOISE_ARRAYS,
            **DRAW_ARRAYS,
        },
        scalars={
            **COMMON_SCALARS,
            **NOISE_SCALARS,
            **DRAW_SCALARS,
            "dispersion_": float,
            "lower_bound_": float,
        },
        defaults=dict.fromkeys(NOISE_SCALARS, float("nan")) | dict.fromkeys(DRAW_SCALARS, 0.0),
        older_parameters=_before_dispersion,
        has_priors=True,
        stream_atoms="atom_shape_",
    )

    def __init__(
        self,
        n_components: int = 2,
        *,
        likelihood: str = "real",
        dispersion: float | str = "auto",
        noise: str | None = "auto",
        positive_components: bool = False,
        fit_intercept: bool = False,
        scale_features: bool = False,
        activation_shape_prior: ArrayLike | str = "auto",
        activation_rate_prior: ArrayLike | str = "auto",
        atom_shape_prior: ArrayLike | str = "auto",
        posterior: str = "auto",
        acceleration: str | None = "squarem",
        init: str = "auto",
        n_init: int | str = "auto",
        max_iter: int = 3000,
        tol: float = 1e-4,
        check_integer: bool = True,
        random_state: int | RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        sparse_zeros: str = "missing",
        batch_size: int | None = None,
        total_samples: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.likelihood = likelihood
        self.dispersion = dispersion
        self.noise = noise
        self.positive_components = positive_components
        self.fit_intercept = fit_intercept
        self.scale_features = scale_features
        self.activation_shape_prior = activation_shape_prior
        self.activation_rate_prior = activation_rate_prior
        self.atom_shape_prior = atom_shape_prior
        self.posterior = posterior
        self.acceleration = acceleration
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.check_integer = check_integer
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.sparse_zeros = sparse_zeros
        self.batch_size = batch_size
        self.total_samples = total_samples

    @fits
    @unlocks_checkpoint
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        atom_shape: ArrayLike | None = None,
        activation_shape: ArrayLike | None = None,
        frozen: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        cell_noise: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> BayesianSkellamSNMF:
        """Fit the posterior to X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data of any sign, NaN where not observed.
        y : None
            Not used.
        atom_shape : array-like of shape (2, n_components, n_features)
            Posterior shapes to start from. Components whose shapes are NaN are initialised as
            `init` says.
        activation_shape : array-like of shape (n_samples, n_components)
            Posterior shapes to start from.
        frozen : array-like of bool of shape (n_components,), or of indices
            Components that keep the `atom_shape` given.
        sample_weight : array-like of shape (n_samples,)
            A weight of 2 counts as the sample twice.
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            The known standard deviation of each cell, in the unit of X; infinity makes a gap of it.
            A DataFrame is aligned by its labels. Noise by feature is added if `noise` asks for it.
        checkpoint : str or path-like, default=None
            File in which the fit notes how far it is. If the file is there, the fit goes on from
            it, to exactly the result that it would have had without the stop. A file of other data
            or other parameters is refused. It stays after the fit.
        checkpoint_every : float, default=60.0
            Seconds from one writing to the next.

        Returns
        -------
        self
        """
        self._check_parameters()
        data = self._check_data(X, fitted=False, cell_noise=cell_noise)
        n_samples, n_features = data.shape
        self._check_noise(data)
        priors = self._check_priors(n_samples, n_features)
        sampled = self._is_sampled(data)
        weights = check.check_weight(sample_weight, data)
        shapes = self._check_starts(atom_shape, activation_shape, n_samples, n_features)
        mask = check.check_frozen(frozen, self.n_components, shapes[1], "atom_shape")
        self._check_batches(data, activation_shape=activation_shape)
        check.record_features(self, X)
        self._keep_parameters()
        self._warn_unobserved(data.summary)
        given = {"activation_shape": shapes[0], "atom_shape": shapes[1], "frozen": mask}
        given |= {"weights": weights, "cell_noise": data.cell_noise}
        runner, random = self._runner(checkpoint, checkpoint_every, data.source, **given)
        data = data._replace(weights=weights)
        known = Given(None if shapes[1] is None else normalise(shapes[1]), shapes[0], mask)
        self._found = self._find_noise(data, priors, known, runner, random)
        with self._problem_to_fit(data, priors, mask) as problem:
            if sampled and self._found is not None:
                chain = self._run_chain(problem, data, mask, runner, random)
                self._publish_draws(problem, data, *chain)
                self._publish_starts(self._found.stability, self._found.n_same)
                return self
            run = partial(self._run, problem, runner, shapes, random)
            n_init = self._n_starts(data) if self._found is None else 1
            best = best_run(run, lambda state: _mean_components(state.atom_shape), n_init)
            if sampled and not best.last.interrupted:
                point = best.result.state
                counts = self._run_counts(problem, data, mask, point, runner, random)
                self._publish_draws(problem, data, *counts)
            else:
                self._end(best)
                self._publish(problem, best.result)
        starts = best if self._found is None else self._found
        self._publish_starts(starts.stability, starts.n_same)
        return self

    def _check_starts(
        self,
        atom_shape: ArrayLike | None,
        activation_shape: ArrayLike | None,
        n_samples: int,
        n_features: int,
    ) -> tuple[NDArray | None, NDArray | None]:
        """Posterior shapes to start from: of the right shape, and above 0."""
        given: list[NDArray | None] = []
        for name, value, shape in (
            ("activation_shape", activation_shape, (n_samples, self.n_components)),
            ("atom_shape", atom_shape, (2, self.n_components, n_features)),
        ):
            if value is not None:
                value = check.check_start(name, value, shape, gaps=name == "atom_shape")
                if np.any(value == 0):
                    raise ValueError(f"{name} must be above 0; found 0.")
                if name == "atom_shape":
                    check.check_whole(name, value)
            given.append(value)
        return given[0], given[1]

    def _check_priors(self, n_samples: int, n_features: int) -> Priors:
        """The priors; atoms of a sign that components do not have are next to impossible."""
        priors = super()._check_priors(n_samples, n_features)
        if not self.positive_components:
            return priors
        shape = priors.atoms.shape * np.array([1.0, _NO_SHAPE])[:, None, None]
        return priors._replace(atoms=priors.atoms._replace(shape=shape))

    def _dispersion_for(self, X: Any) -> float:
        """The dispersion that a fit to X without a component for noise would use."""
        self._check_parameters()
        data = self._check_data(X, fitted=False)
        runner = Runner(UNRECORDED, bool(self.verbose))
        priors = self._check_priors(*data.shape)
        if self._choose_scale(data, priors, runner):
            raise KeyboardInterrupt
        return self.dispersion_

    def _priced(self, model: Model) -> Model:
        """The model with the rate that was found: fixed, at the atoms of the start or the fit."""
        if not np.isfinite(self._price):
            return model
        if self._found is None:  # batches that go on from a fit
            rate = self._priors.activations.rate
        else:
            price = LengthPrice(self._price, self._noise_scale / self._unit)
            rate = price.rates(self._found.atoms)
        prior = model.activations.prior._replace(rate=rate)
        return model.with_priors(model.priors._replace(activations=prior))

    def _run(
        self,
        problem: Problem,
        runner: Runner,
        given: tuple[NDArray | None, NDArray | None],
        random: RandomState,
    ) -> Result[vb.Posteriors]:
        """One run from one start; of no iterations, if Ctrl-C has been pressed already."""
        state, interrupted = self._start(problem, runner, given, random)
        if self.batch_size is not None and not interrupted:
            return self._run_in_batches(problem, runner, state.atom_shape, random)
        stopping = Stopping(0 if interrupted else self.max_iter, self.tol)
        # Handed over, and not kept here.
        begin = [state].pop
        del state
        result = runner.run(accelerate(vb, self.acceleration), problem, begin, "VBEM", stopping)
        if interrupted:
            return result._replace(reason="interrupted")
        return self._finish(problem, result) if result.converged else result

    def _start(
        self,
        problem: Problem,
        runner: Runner,
        given: tuple[NDArray | None, NDArray | None],
        random: RandomState,
    ) -> tuple[vb.Posteriors, bool]:
        """Where a run starts: as `init` says, but for what was given; and whether Ctrl-C came."""
        interrupted = self._search_interrupted
        if self._found is not None:
            atoms = self._first_atoms(problem, self._found)
            state = vb.state_from(problem, em.Factors(solve_roughly(problem, atoms), atoms))
        elif self.init == "prior" and _tells_apart(problem):
            state = vb.prior_state(problem)
        else:
            method = "random" if self.init == "map" else self.init
            point = self._with_signs(start(problem, method, random))
            if self.init == "map" and not interrupted:
                point, interrupted = self._find_mode(problem, runner, point, random)
            state = vb.state_from(problem, point)
        activation_shape, atom_shape = given
        dtype = problem.dtype
        if activation_shape is not None:
            shape = problem.executor.scatter(activation_shape.astype(dtype))
            state = state._replace(activation_shape=shape)
        if atom_shape is not None:
            filled = np.where(np.isnan(atom_shape), state.atom_shape, atom_shape)
            state = state._replace(atom_shape=filled.astype(dtype))
        return state, interrupted

    def _refitting(self) -> tuple[SkellamSNMF, dict[str, NDArray]]:
        """An estimator of point estimates for other data, and the start values for it."""
        own = self.get_params()
        shared = {name: own[name] for name in SkellamSNMF().get_params() if name in own}
        estimator = SkellamSNMF(**shared).set_params(
            n_components=len(self.components_), n_init=1, n_jobs=1, verbose=0, batch_size=None
        )
        estimator.set_params(init="random", activation_shape_prior=1.0, atom_shape_prior=1.0)
        estimator.set_params(scale_features=False)
        if np.isfinite(self._price):
            estimator._known_price = self._price
        else:
            # Activations of the same mean, with a shape that point estimates can have.
            means = self.activation_shape_prior_ / self.activation_rate_prior_
            estimator.set_params(activation_rate_prior=1 / means)
        return estimator, {"atoms": self.atoms_, "activations": self.activations_}

    def _find_mode(
        self, problem: Problem, runner: Runner, point: em.Factors, random: RandomState
    ) -> tuple[em.Factors, bool]:
        """The maximum a posteriori near a point, and whether Ctrl-C ended the search for it."""
        if self.batch_size is not None:
            learn = partial(minibatch.learn_maximum, solver="newton")
            found = self._run_batches(problem, runner, learn, point.atoms, random)
            atoms = found.state.atoms
            solved = solve_maximum(problem, atoms).astype(point.activations.dtype)
            return em.Factors(solved, atoms), found.interrupted
        name, algorithm = choose_algorithm("newton", self.acceleration, problem)
        begin = partial(em.above_floor, problem, point)
        stopping = Stopping(self.max_iter, _MODE_TOLERANCE)
        result = runner.run(algorithm, problem, begin, name, stopping)
        return result.state, result.interrupted

    def _run_in_batches(
        self, problem: Problem, runner: Runner, atom_shape: NDArray, random: RandomState
    ) -> Result[vb.Posteriors]:
        result = self._run_batches(problem, runner, self._learn, atom_shape, random)
        atom_shape = result.state.atoms
        shape = solve_posterior(problem, atom_shape).astype(problem.dtype)
        state = vb.Posteriors(shape, atom_shape)
        return Result(state, [*result.objectives[1:], vb.evaluate(problem, state)], result.reason)

    def _first_stream(self, problem: Problem) -> minibatch.Stream:
        """What is known before the next batch: the posterior of a fit, or a start."""
        if not hasattr(self, "atom_shape_"):
            runner, random = Runner(UNRECORDED, False), check_random_state(self.random_state)
            state, _ = self._start(problem, runner, (None, None), random)
            return minibatch.Stream.from_atoms(state.atom_shape)
        activations = np.asarray(self.activations_) / self._unit
        known = minibatch.known(problem, self.atoms_, activations)
        return known._replace(atoms=self.atom_shape_)

    def _learn(
        self, problem: Problem, stream: minibatch.Stream, total: float
    ) -> tuple[minibatch.Stream, minibatch.BatchResult]:
        return minibatch.learn_posterior(problem, stream, total)

    def _publish_batch(self, problem: Problem, result: minibatch.BatchResult, total: float) -> None:
        """Set the fitted attributes after a batch."""
        self.atom_shape_ = self._stream.atoms
        self.atoms_ = self.atom_shape_ / self.atom_shape_.sum(axis=(0, 2), keepdims=True)
        self._publish_noise(problem)
        self.activation_shape_ = result.activations.astype(problem.dtype)
        (self.activation_rate_, self.activations_), _ = problem.over_samples(
            posterior_samples, (result.activations,)
        )
        value = vb.bound_of_batch(problem, self.atom_shape_, total, result.objective)
        self.lower_bounds_ = np.append(getattr(self, "lower_bounds_", ()), value)
        self.lower_bound_ = value
        self._publish_stream()
        self._forget_draws()
        self._publish_explained(problem, self.activations_, warn=False)

    @staticmethod
    def _finish(problem: Problem, result: Result[vb.Posteriors]) -> Result[vb.Posteriors]:
        """Solve for the activations, so that they are those that `transform` would return."""
        state = refine_posterior(problem, result.state)
        return result.ending_with(state, vb.evaluate(problem, state))

    def _publish(self, problem: Problem, result: Result[vb.Posteriors]) -> None:
        """Set the fitted attributes."""
        shape, self.atom_shape_ = result.state
        (rate, means), _ = problem.over_samples(posterior_samples, (shape,))
        self.activation_shape_, self.activation_rate_, self.activations_ = (
            self._gather(problem, problem.executor.persist(rows)) for rows in (shape, rate, means)
        )
        self.atoms_ = self.atom_shape_ / self.atom_shape_.sum(axis=(0, 2), keepdims=True)
        self._publish_noise(problem)
        self._publish_explained(problem, means)
        self.lower_bounds_ = np.array(result.objectives)
        self.lower_bound_ = result.objectives[-1]
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.stop_reason_ = result.reason
        self._forget_draws()

    def _prior_scale(self) -> float:
        return self.dispersion_

    def _solve_rows(self, problem: Problem) -> Any:
        """Posterior means of the activations of the problem's samples, given the atoms'."""
        if self.posterior_ == "correlated":
            return self._sampled_rows(problem)
        shape = solve_posterior(problem, self.atom_shape_)
        (_, means), _ = problem.over_samples(posterior_samples, (shape,))
        return means


def _mean_components(atom_shape: NDArray) -> NDArray:
    """Posterior mean of the signed components."""
    return (atom_shape[0] - atom_shape[1]) / atom_shape.sum(axis=(0, 2))[:, None]


def _tells_apart(problem: Problem) -> bool:
    """Whether the priors tell the components apart, or there is one only."""
    return problem.n_components == 1 or problem.model.priors.tell_components_apart()
