"""`seminmf fit`: from a table to a model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..bayesian import BayesianSkellamSNMF
from ..euclidean import EuclideanSNMF
from ..skellam import SkellamSNMF
from . import formats
from .models import load_file, scale_of, summary
from .options import ModelOptions, TableOptions
from .output import print_json, say, show_progress, spoken_warnings
from .tables import read_table


@dataclass(frozen=True)
class Request:
    """What was asked for, beside the options of tables and models.

    Attributes
    ----------
    data, out : str
    estimator : {"SkellamSNMF", "BayesianSkellamSNMF", "EuclideanSNMF"}
    n_components : int or None
        None takes what the prior has.
    own : dict
        Parameters that only some estimators have.
    scale : bool
        Whether features are scaled before the fit.
    prior : str or None
        File of a learned prior.
    checkpoint : str or None
    checkpoint_every : float
    """

    data: str
    out: str
    estimator: str
    n_components: int | None
    own: dict[str, Any]
    scale: bool
    prior: str | None
    checkpoint: str | None
    checkpoint_every: float


def run(request: Request, table: TableOptions, model: ModelOptions, as_json: bool) -> None:
    """Fit, write the model, and say how it went."""
    if request.out == formats.STANDARD:
        raise ValueError("A model cannot be written to standard output; give -o a file.")
    formats.check_folder(request.out)
    estimator = build(request, model).set_params(verbose=int(show_progress()))
    found = read_table(request.data, table)
    X = found.X
    begin = time.perf_counter()
    with spoken_warnings() as warnings:
        if request.scale:
            _check_scalable(estimator)
            scale = scale_of(X)
            X = X / scale
        options: dict[str, Any] = {}
        if request.checkpoint is not None:
            options = {"checkpoint": request.checkpoint}
            options["checkpoint_every"] = request.checkpoint_every
        fitted = estimator.fit(X, **options)
        if request.scale:
            fitted.feature_scale_ = scale
    seconds = time.perf_counter() - begin
    fitted.set_params(verbose=0).save(request.out)
    if request.checkpoint is not None and fitted.stop_reason_ != "interrupted":
        Path(request.checkpoint).unlink(missing_ok=True)
    said = summary(fitted) | {"seconds": seconds, "model": request.out, "warnings": warnings}
    said["missing"] = float(np.isnan(np.asarray(X)).mean())
    if as_json:
        print_json(said)
    else:
        _say(said)


def build(request: Request, model: ModelOptions) -> Any:
    """The estimator that was asked for; one that does not know a parameter refuses it."""
    classes = {c.__name__: c for c in (SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF)}
    parameters = model.given() | request.own
    if request.prior is not None:
        return _from_prior(request, parameters)
    if request.n_components is None:
        raise ValueError("Give the number of components by -k; seminmf select may help.")
    chosen = classes[request.estimator]
    unknown = sorted(set(parameters) - set(chosen._get_param_names()))
    if unknown:
        option = unknown[0].replace("_", "-")
        raise ValueError(f"{request.estimator} has no --{option}.")
    return chosen(request.n_components, **parameters)


def _from_prior(request: Request, parameters: dict[str, Any]) -> Any:
    """The Bayesian estimator with a learned prior; the rest may be chosen."""
    learner = load_file(request.prior or "")
    if not hasattr(learner, "estimator_"):
        raise ValueError(f"{request.prior} has a fitted model, not a learned prior.")
    fixed = {"likelihood", "scale", *(p for p in parameters if p.endswith("_prior"))}
    given = sorted(fixed & set(parameters))
    if given:
        raise ValueError(f"--{given[0].replace('_', '-')} is part of the learned prior.")
    if request.n_components not in (None, learner.estimator_.n_components):
        raise ValueError(
            f"The learned prior has {learner.estimator_.n_components} components, "
            f"and -k says {request.n_components}."
        )
    return learner.estimator_.set_params(**parameters)


def _check_scalable(estimator: Any) -> None:
    if getattr(estimator, "likelihood", "real") == "integer":
        raise ValueError("--scale makes real numbers of integers, so it needs --likelihood real.")


def _say(found: dict[str, Any]) -> None:
    end = {
        "tolerance": "converged",
        "max_iter": "not converged",
        "interrupted": "interrupted",
    }[found["stop_reason"]]
    say(
        f"{found['estimator']} with {found['n_components']} components, fitted to "
        f"{found['n_samples']} samples × {found['n_features']} features "
        f"({found['missing']:.1%} missing): {end} after {found['n_iter']} iterations, "
        f"{found['seconds']:.1f} s."
    )
    shares = sorted(found["shares"], reverse=True)
    say("Shares of the components: " + ", ".join(f"{share:.0%}" for share in shares))
    say(f"Model: {found['model']}")
