"""What is fitted to compare numbers of components: the data as counts, and a noise component."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._algorithms.dispersion import preliminary_rank
from .._estimators import validation as check
from .._model.model import Priors
from .._prior_learning.posteriors import as_parameters
from ..bayesian import BayesianSkellamSNMF
from ..skellam import SkellamSNMF

# Real data are seen in the unit in which mean |x| / noise variance is this many: measured.
_NOISE_UNIT = 0.25
# The share of the noise's variance that the noise component starts with: as much as the signal has.
# With 0.6 and noise that grows with the signal, fits had not let go of it when their rounds ended.
_NOISE_START = 0.25
_NOISE_SHAPE = 1.0
# Posterior shapes that say: these atoms are known.
_KNOWN = 1e8


class Comparison(NamedTuple):
    """Data as counts or as if they were counts, and how to fit them.

    Attributes
    ----------
    X : (J, I) array
        In units of `scale`.
    scale : (I,) array
        One number for all features, or in proportion to their noise where that was found.
    noise : float
        Sum of a sample's rates that the noise component starts with; 0 if there is none.
    estimator : BayesianSkellamSNMF
    learn_prior : bool
    """

    X: NDArray
    scale: NDArray
    noise: float
    estimator: BayesianSkellamSNMF
    learn_prior: bool

    @classmethod
    def of(
        cls, estimator: BayesianSkellamSNMF, X: NDArray, learn_prior: bool, most: int
    ) -> Comparison:
        """The comparison with the scale that all candidates share."""
        ones = np.ones(X.shape[1])
        known = estimator._likelihood().known_dispersion
        if known is not None:
            return cls(X, known * ones, 0.0, estimator, bool(learn_prior))
        found = _preliminary_fit(X, most)
        # In units of the noise, the component of the noise is flat.
        finds = check.is_auto(estimator.dispersion) and check.is_auto(estimator.noise)
        levels = np.where(found._noise_scale > 0, found._noise_scale, 1.0) if finds else ones
        variance, size = _noise_and_signal(X / levels, found, levels)
        scale: Any = estimator.dispersion or 1.0  # the paper's M = ∞ takes X as it is
        if check.is_auto(scale):
            scale = max(_NOISE_UNIT * variance / size, 1e-4 * size) if size > 0 else 1.0
        noise = max(_NOISE_START * X.shape[1] * variance / float(scale) ** 2, 1e-3)
        unit = float(scale) * levels
        return cls(X / unit, unit, noise, estimator, bool(learn_prior))

    def log_unit(self, cells: NDArray) -> float:
        """What turns the log-density of some cells, a mask (J, I), into that in the unit of X."""
        return -float(np.sum(cells @ np.log(self.scale)))

    @property
    def has_noise(self) -> bool:
        """Whether each fit has one more component, which holds noise."""
        return self.noise > 0

    @property
    def learns_shape(self) -> bool:
        """Whether the shape of the activations' prior is learned with its rate.

        Not for real data: the mean field takes counts behind the noise for activations, and the
        shape rises, so that no activation comes near 0.
        """
        return self.learn_prior and not self.has_noise

    def model(self, n_components: int, seed: int) -> BayesianSkellamSNMF:
        """The estimator for so many components, and one for the noise."""
        model = clone(self.estimator).set_params(
            n_components=n_components, likelihood="integer", check_integer=False
        )
        model.set_params(dispersion="auto", noise=None, posterior="mean-field")
        model.set_params(scale_features=False)  # the data are scaled already
        model.set_params(random_state=int(seed), n_jobs=1, verbose=0)
        prior = self._first_prior(model, n_components)
        return model.set_params(n_components=n_components + self.has_noise, **prior)

    def _first_prior(self, model: BayesianSkellamSNMF, n_components: int) -> dict[str, NDArray]:
        """The estimator's priors, or rates with which activations sum to the data together.

        If each had that sum, the fits would start, and stay, with too much in all activations. One
        more component, minus the sum of the others, then brings the mean back, and is chosen.
        """
        n_samples, n_features = self.X.shape
        priors = model._check_priors(n_samples, n_features)
        shape, rate, atom_shape = priors.parameters.values()
        if self.learn_prior:
            size = max(float(np.nansum(np.abs(self.X))) / n_samples, 1e-3)
            rate = shape * n_components / size
        prior = as_parameters(Priors.of(shape, rate, atom_shape))
        if not self.has_noise:
            return prior
        values = (_NOISE_SHAPE, _NOISE_SHAPE / self.noise, 1.0)
        return {
            name: _with_noise(parameter, n_components, value)
            for (name, parameter), value in zip(prior.items(), values, strict=True)
        }

    def start(self, n_components: int) -> dict[str, Any]:
        """What `fit` is to know: the atoms of the noise, equal in all cells of both signs."""
        if not self.has_noise:
            return {}
        n_features = self.X.shape[1]
        shape = np.full((2, n_components + 1, n_features), np.nan)
        shape[:, n_components] = _KNOWN / (2 * n_features)
        return {"atom_shape": shape, "frozen": [n_components]}


def _with_noise(parameter: NDArray, n_components: int, value: float) -> NDArray:
    """A prior's parameter with `value` for the component of the noise."""
    shape = list(parameter.shape)
    shape[1] = n_components
    width = [(0, 0)] * parameter.ndim
    width[1] = (0, 1)
    return np.pad(np.broadcast_to(parameter, shape), width, constant_values=value)


def _preliminary_fit(X: NDArray, most: int) -> SkellamSNMF:
    """A fit with many components, for its noise."""
    rank = preliminary_rank(int(np.sum(~np.isnan(X))), sum(X.shape), most)
    model = SkellamSNMF(rank, max_iter=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def _noise_and_signal(X: NDArray, model: SkellamSNMF, levels: NDArray) -> tuple[float, float]:
    """Variance of the noise and mean |x| without it, of X in units of the levels (I,)."""
    signal = model.inverse_transform(model.activations_) / levels
    observed = ~np.isnan(X)
    free = max(int(observed.sum()) - len(model.components_) * sum(X.shape), 1)
    variance = float(np.nansum((X - signal) ** 2)) / free
    return variance, float(np.mean(np.abs(signal[observed])))
