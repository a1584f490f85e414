"""The posterior of one matrix, in the form that priors are learned from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._algorithms import em
from .._model.model import Priors
from ..bayesian import BayesianSkellamSNMF
from . import conflict, evidence
from .gaussian_potential import GaussianPotential
from .hyperparameters import gamma_shape
from .laplace import Found
from .prior_statistics import Expectations, Maps

# Components whose priors differ by this share are told apart.
_DIFFERENT = 1e-3
_NOTHING = GaussianPotential(np.zeros((0, 0)), np.zeros(0))


class Posterior(NamedTuple):
    """The fit to one matrix.

    Attributes
    ----------
    model : BayesianSkellamSNMF
    expected : Expectations
    objective : float
        Its bound or evidence.
    own : GaussianPotential
        What it says of the part of the prior that was found with the atoms.
    weight : float
        How much it counts, next to others.
    """

    model: BayesianSkellamSNMF
    expected: Expectations
    objective: float
    own: GaussianPotential = _NOTHING
    weight: float = 1.0

    def ordered(self, order: NDArray) -> Posterior:
        """The posterior with its components in another order, before anything is known of `own`."""
        model = _copy(self.model)
        for name in ("activations_", "activation_shape_", "activation_rate_"):
            setattr(model, name, getattr(model, name)[:, order])
        model.atoms_, model.atom_shape_ = model.atoms_[:, order], model.atom_shape_[:, order]
        model.r2_drop_ = model.r2_drop_[order]
        return self._replace(model=model, expected=self.expected.of_components(order))


def variational(
    estimator: BayesianSkellamSNMF,
    X: Any,
    prior: Priors,
    start: BayesianSkellamSNMF | None = None,
    **parameters: Any,
) -> Posterior:
    """That of variational Bayes: a copy of the estimator, fitted with this prior."""
    model = clone(estimator).set_params(**as_parameters(prior), **parameters)
    if start is not None:
        model.set_params(init="random", n_init=1)
        model.fit(X, atom_shape=start.atom_shape_, activation_shape=start.activation_shape_)
    else:
        if prior.tell_components_apart(_DIFFERENT):
            model.set_params(init="prior", n_init=1)
        model.fit(X)
    if model.stop_reason_ == "interrupted":
        raise KeyboardInterrupt
    rate = model.activation_rate_.astype(np.float64) * model.dispersion_
    expected = Expectations.of(model.activation_shape_, rate, model.atom_shape_)
    return Posterior(model, expected, model.lower_bound_)


def correlated(
    X: Any,
    posterior: Posterior,
    prior: Priors,
    maps: Maps,
    potential: GaussianPotential | None,
    *,
    doubt: bool = False,
    near: bool = False,
) -> Posterior:
    """That with the correlations of activations, at the atoms that maximise the evidence.

    The maps are those of priors that are found with the atoms, with a potential; without
    one they are left as they are. `doubt` tries other starts where the result contradicts it.
    `near` says that the posterior is one of this kind, with nearly this prior.
    """
    model = _copy(posterior.model).set_params(**as_parameters(prior))
    model._priors = prior
    data = model._check_data(X)
    with model._problem(data, prior, model.dispersion_) as problem:
        start = em.Factors(model.activations_ / problem.model.likelihood.unit, model.atoms_)
        if doubt and potential is not None:
            found, weight = conflict.maximise(problem, maps, potential, start)
        else:
            stages = evidence.LAST_STAGES if near else evidence.STAGES
            found, weight = evidence.maximise(problem, maps, potential, start, stages), 1.0
        _take_over(model, found)
        model._publish_explained(problem, model.activations_, warn=False)
    return Posterior(model, found.expected, found.evidence, found.own, weight)


def _take_over(model: BayesianSkellamSNMF, found: Found) -> None:
    """Replace the model's posterior."""
    expected = found.expected
    dtype = model.atoms_.dtype
    shape = gamma_shape(np.log(expected.activations) - expected.log_activations)
    model.activations_ = (expected.activations * model.dispersion_).astype(dtype)
    model.activation_shape_ = shape.astype(dtype)
    model.activation_rate_ = (shape / model.activations_).astype(dtype)
    model.atoms_, model.atom_shape_ = found.atoms.astype(dtype), found.atom_shape.astype(dtype)


def _copy(model: BayesianSkellamSNMF) -> BayesianSkellamSNMF:
    """The fitted model once more, which may be changed."""
    copy = clone(model)
    vars(copy).update(vars(model))
    return copy


def as_parameters(prior: Priors) -> dict[str, NDArray]:
    """A copy of the prior as an estimator's parameters."""
    return {f"{name}_prior": value.copy() for name, value in prior.parameters.items()}
