"""Draws from a posterior in the form that ArviZ has."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.random import RandomState

_DIMENSIONS = {
    "activations": ["sample", "component"],
    "atoms": ["sign", "component", "feature"],
    "components": ["component", "feature"],
}


def to_arviz(model: Any, n_draws: int, random_state: int | RandomState | None) -> Any:
    """Draws of a fitted model's activations, atoms and components, as one chain."""
    try:
        from arviz import from_dict
    except ImportError:
        raise ImportError('to_arviz needs ArviZ: pip install "seminmf[arviz]".') from None
    activations, atoms = model.sample(n_draws, random_state)
    components = model._in_unit_of_X(atoms[:, 0] - atoms[:, 1])
    draws = {"activations": activations, "atoms": atoms, "components": components}
    names = getattr(model, "feature_names_in_", np.arange(model.n_features_in_))
    options: dict[str, Any] = {
        "coords": {
            "sample": np.arange(len(model.activations_)),
            "component": np.arange(len(model.components_)),
            "sign": ["positive", "negative"],
            "feature": np.asarray(names),
        },
        "dims": _DIMENSIONS,
    }
    posterior = {name: values[None] for name, values in draws.items()}
    # From version 1 on, the groups are in a dict.
    if "posterior" in inspect.signature(from_dict).parameters:
        return from_dict(posterior=posterior, **options)
    return from_dict({"posterior": posterior}, **options)
