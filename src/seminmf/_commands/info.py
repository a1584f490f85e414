"""`seminmf info`: what is in a file?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._views.concerns import Concern, about_model, about_tensors
from ..io import LEARNER
from . import formats
from .models import components_table, is_tensor_model, load_file, summary, tensor_summary
from .output import folded, print_json, printable


def info(model: str, out: str | None, as_json: bool) -> None:
    """Say what a file has; write its components as a table."""
    found = load_file(model)
    learner, tensors = type(found).__name__ == LEARNER, is_tensor_model(found)
    if out is not None:
        if tensors:
            raise ValueError(f"{model} has a tensor model, whose factors are not one table.")
        if learner:
            raise ValueError(f"{model} has a learned prior, which has no components.")
        formats.check_tables([out], [model], as_json)
        formats.write(out, components_table(found))
    if learner:
        said = _about_learner(found)
    else:
        describe, about = (tensor_summary, about_tensors) if tensors else (summary, about_model)
        said = describe(found) | {"concerns": _in_sentences(about(found))}
    if as_json:
        print_json(said)
    elif out != formats.STANDARD:
        for name, value in said.items():
            if name == "concerns" or (isinstance(value, float) and math.isnan(value)):
                continue  # said at the end, or nothing to say
            print(folded(printable(f"{name.replace('_', ' ')}: {_in_words(value)}")))
        for concern in said.get("concerns", ()):
            print(folded(printable(f"worth a look: {concern}")))


def _in_sentences(concerns: list[Concern]) -> list[str]:
    """What is worth a look."""
    return [f"{concern.title}. {concern.text}" for concern in concerns]


def _about_learner(learner: Any) -> dict[str, Any]:
    return {
        "estimator": LEARNER,
        "n_components": learner.estimator_.n_components,
        "n_features": learner.n_features_in_,
        "n_matrices": learner.n_matrices_,
        "dispersion": learner.dispersion_,
        "likelihood": learner.estimator_.likelihood,
        "learning_rate": learner.learning_rate,
    }


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        several = any(isinstance(part, dict) or np.ndim(part) for part in value.values())
        return ("; " if several else ", ").join(
            f"{name}={_in_words(part) if np.ndim(part) else part}" for name, part in value.items()
        )
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        parts = list(value)
        return ", ".join(f"{p:.3f}" if isinstance(p, float) else str(p) for p in parts)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
