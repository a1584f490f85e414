"""Files of learners: all that the next matrix of a stream needs."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from sklearn.base import clone

from .._estimators import files
from .._estimators.container import Content
from ..bayesian import BayesianSkellamSNMF
from .atom_history import AtomHistory
from .gaussian_potential import GaussianPotential
from .learned import Learned, Plan
from .prior_statistics import Statistics

_STATISTICS = ("gamma", "delta")
_POTENTIAL = ("belief.precision", "belief.potential")
_SHARING_PARAMETERS = ("activation_shape_sharing", "activation_rate_sharing", "atom_sharing")
_SCALARS: dict[str, type] = {
    "n_features_in_": int,
    "dispersion_": float,
    "_seed": int,
    "_n_samples": int,
}
_COUNTS: dict[str, type] = {"n_matrices": int, "weight": float, "n_samples": float}
# Samples of a learner's matrices, where no array has as many numbers.
_MOST_SAMPLES = 10**7


def save(learner: Any, path: str | os.PathLike[str]) -> None:
    """Write a learner to a file, whole or not at all."""
    files.check_own_class(learner, "partial_fit")
    files.write(learner, path, _content(learner), rebuild)


def _content(learner: Any) -> Content:
    """What is particular to a learner: its estimator, and all that the next matrix needs."""
    learned: Learned = learner._learned
    arrays = files.priors_content(learned.prior)
    arrays |= {name: getattr(learned.statistics, name) for name in _STATISTICS}
    arrays |= {f"atoms.{name}": value for name, value in learned.statistics.atoms._asdict().items()}
    arrays |= dict(zip(_POTENTIAL, learned.potential, strict=True))
    estimator = clone(learner.estimator)
    for name in estimator._kept_parameters:  # what the stream began with
        setattr(estimator, name, getattr(learner.estimator_, name))
    inner, inner_arrays = files.split_parameters(estimator, files.PRIOR_PARAMETERS)
    parameters, own_arrays = files.split_parameters(
        learner, _SHARING_PARAMETERS, skip=("estimator",)
    )
    fitted = {
        "n_matrices": learned.n_matrices,
        "weight": learned.weight,
        "n_samples": learned.statistics.n_samples,
        **{name: getattr(learner, name) for name in _SCALARS},
    }
    header = {"parameters": parameters, "estimator_parameters": inner, "fitted": fitted}
    return Content(header, arrays | inner_arrays | own_arrays)


def array_names() -> set[str]:
    """Names of all arrays that a file of a learner may hold."""
    return {
        *_STATISTICS,
        *_POTENTIAL,
        *(f"atoms.{name}" for name in AtomHistory._fields),
        *(f"parameter.{parameter}" for parameter in _SHARING_PARAMETERS),
        *files.shared_names(),
    }


def rebuild(kind: Any, content: Content) -> Any:
    """The learner that the content describes, or a ValueError that says what is wrong."""
    inner = files.parameters(
        content,
        BayesianSkellamSNMF,
        "estimator_parameters",
        files.PRIOR_PARAMETERS,
        BayesianSkellamSNMF._fitted_fields.older_parameters,
    )
    fitted = dict(content.header["fitted"])
    if "scale_" in fitted:  # of files from when there was no dispersion
        fitted["dispersion_"] = fitted.pop("scale_")
        if inner.get("dispersion") == 0 and fitted["dispersion_"] != 1:
            inner["dispersion"] = fitted["dispersion_"]
    own = files.parameters(content, kind, "parameters", _SHARING_PARAMETERS)
    learner = kind(BayesianSkellamSNMF(**inner), **own)
    learner._check_parameters()
    for scalar, scalar_type in _SCALARS.items():
        setattr(learner, scalar, files.checked_scalar(scalar, fitted.get(scalar), scalar_type))
    sizes = learner.dispersion_, learner.n_features_in_, learner._n_samples
    if not all(0 < size < math.inf for size in sizes):
        raise ValueError("its sizes and its dispersion must be above 0")
    numbers = {
        name: files.checked_scalar(name, fitted.get(name), scalar_type)
        for name, scalar_type in _COUNTS.items()
    }
    if numbers["n_matrices"] < 0 or not 0 < min(numbers["weight"], numbers["n_samples"]) < math.inf:
        raise ValueError("its counts of matrices and samples must be above 0")
    _check_sizes(content, learner)
    plan = learner._plan(learner._n_samples, learner.n_features_in_)
    learned = _learned(content, learner, plan, **numbers)
    files.set_feature_names(learner, content)
    learner._publish(learned)
    return learner


def _check_sizes(content: Content, learner: Any) -> None:
    """Believe sizes only if arrays have them: what follows takes memory in proportion."""
    shape = (2, learner.estimator.n_components, learner.n_features_in_)
    files.checked_array(content, "atoms.settled", shape)
    longest = max(len(np.atleast_1d(array)) for array in content.arrays.values())
    if learner._n_samples > max(_MOST_SAMPLES, longest):
        raise ValueError(f"its matrices have {learner._n_samples} samples, which none can have")


def _learned(
    content: Content, learner: Any, plan: Plan, n_matrices: int, weight: float, n_samples: float
) -> Learned:
    """What a learner knows, in arrays of the sizes that its sharing maps ask for."""
    n_components, n_features = learner.estimator.n_components, learner.n_features_in_
    sizes = {"2": 2, "J": learner._n_samples, "K": n_components, "I": n_features}
    prior = files.read_priors(content, sizes)
    files.check_numbers("_prior.activation_rate", prior.activations.rate, zero=False)
    # A learner that has seen nothing has all that is fixed by its settings.
    empty = learner._start(learner._n_samples, n_features, plan)
    gamma, delta = (
        files.checked_array(content, name, getattr(empty.statistics, name).shape)
        for name in _STATISTICS
    )
    potential = GaussianPotential(
        *(
            files.checked_array(content, name, array.shape)
            for name, array in zip(_POTENTIAL, empty.potential, strict=True)
        )
    )
    atoms = _atom_history(content, (2, n_components, n_features))
    if np.any(delta < 0) or not all(
        np.all(np.isfinite(a)) for a in (gamma, delta, *potential, *atoms)
    ):
        raise ValueError("its statistics are not finite, or its sums of activations are negative")
    return empty._replace(
        prior=prior,
        statistics=Statistics(n_samples, gamma, delta, atoms),
        potential=potential,
        n_matrices=n_matrices,
        weight=weight,
    )


def _atom_history(content: Content, shape: tuple[int, ...]) -> AtomHistory:
    """What matrices said of the atoms."""
    weights = files.checked_array(content, "atoms.weights", None)
    records = (len(weights), *shape) if weights.ndim == 1 else ()
    shapes = {"settled": shape, "weights": records[:1]}
    history = AtomHistory(
        *(
            files.checked_array(content, f"atoms.{name}", shapes.get(name, records))
            for name in AtomHistory._fields
        )
    )
    if not all(np.all(part >= 0) for part in (weights, history.information, history.best_for)):
        raise ValueError("its records have weights, shapes or information below 0")
    return history
