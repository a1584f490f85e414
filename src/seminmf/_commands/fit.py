"""`seminmf fit`: from a table to a model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._views.ending import ending
from ..bayesian import BayesianSkellamSNMF
from ..euclidean import EuclideanSNMF
from ..skellam import SkellamSNMF
from . import formats
from .models import check_scale, feature_names, load_file, summary
from .noise import read_cell_noise
from .options import ModelOptions, TableOptions, option_of
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
    prior : str or None
        File of a learned prior.
    checkpoint : str or None
    checkpoint_every : float
    cell_noise : str or None
        Table of known standard deviations.
    """

    data: str
    out: str
    estimator: str
    n_components: int | None
    own: dict[str, Any]
    prior: str | None
    checkpoint: str | None
    checkpoint_every: float
    cell_noise: str | None = None


def run(request: Request, table: TableOptions, model: ModelOptions, as_json: bool) -> None:
    """Fit, write the model, and say how it went."""
    if request.out == formats.STANDARD:
        raise ValueError("A model cannot be written to standard output; give -o a file.")
    least_squares = request.estimator == "EuclideanSNMF"
    if request.cell_noise is not None and (least_squares or request.prior is not None):
        raise ValueError("--cell-noise does not go with --euclidean or --prior.")
    inputs = [request.data, request.prior, request.cell_noise]
    formats.check_places([request.out, request.checkpoint], inputs)
    estimator, names = build(request, model)
    estimator.set_params(verbose=int(show_progress()))
    with spoken_warnings() as warnings:
        read = read_table(request.data, table, names)
        X, known = read.X, {}
        if request.cell_noise is not None:
            known["cell_noise"] = read_cell_noise(request.cell_noise, read, table, names)
        del read  # large, as X is
        begin = time.perf_counter()
        check_scale(X, estimator)
        fitted = estimator.fit(
            X, checkpoint=request.checkpoint, checkpoint_every=request.checkpoint_every, **known
        )
    interrupted = fitted._interrupted
    if interrupted and request.checkpoint is not None:
        say("The same command goes on from here.")
        raise KeyboardInterrupt
    fitted.set_params(verbose=0).save(request.out)
    if request.checkpoint is not None:
        Path(request.checkpoint).unlink(missing_ok=True)
    said = summary(fitted) | {"model": request.out, "warnings": warnings}
    said["seconds"] = time.perf_counter() - begin
    said["missing"] = float(np.isnan(np.asarray(X)).mean())
    if as_json:
        print_json(said)
    else:
        _say(said)
    if interrupted:
        raise KeyboardInterrupt


def build(request: Request, model: ModelOptions) -> tuple[Any, list[str] | None]:
    """The estimator that was asked for, and the features that its prior knows by name."""
    classes = {c.__name__: c for c in (SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF)}
    parameters = model.given() | request.own
    if request.prior is not None:
        return _from_prior(request, parameters)
    if request.n_components is None:
        raise ValueError("Give the number of components by -k; seminmf select may help.")
    chosen = classes[request.estimator]
    unknown = sorted(set(parameters) - set(chosen._get_param_names()))
    if unknown:
        raise ValueError(f"{request.estimator} has no {option_of(unknown[0])}.")
    return chosen(request.n_components, **parameters), None


def _from_prior(
    request: Request, parameters: dict[str, Any]
) -> tuple[BayesianSkellamSNMF, list[str] | None]:
    """The Bayesian estimator with a learned prior; the rest may be chosen."""
    learner = load_file(request.prior or "")
    if not hasattr(learner, "estimator_"):
        raise ValueError(f"{request.prior} has a fitted model, not a learned prior.")
    estimator = learner.estimator_
    if "scale_features" in parameters:
        raise ValueError("--scale does not go with --prior, which was learned in other units.")
    fixed = {"likelihood", "dispersion", "noise", *(p for p in parameters if p.endswith("_prior"))}
    for name in sorted(parameters):
        if name in fixed:
            raise ValueError(f"{option_of(name)} is part of the learned prior.")
        if name not in estimator.get_params():
            raise ValueError(f"{type(estimator).__name__} has no {option_of(name)}.")
    if request.n_components not in (None, estimator.n_components):
        raise ValueError(
            f"The learned prior has {estimator.n_components} components, "
            f"and -k says {request.n_components}."
        )
    return estimator.set_params(**parameters), feature_names(learner)


def _say(found: dict[str, Any]) -> None:
    drawn = found.get("posterior") == "correlated"
    end = ending(found["stop_reason"], found["n_iter"], drawn=drawn)
    say(
        f"{found['estimator']} with {found['n_components']} components, fitted to "
        f"{found['n_samples']} samples × {found['n_features']} features "
        f"({found['missing']:.1%} missing): {end}, {found['seconds']:.1f} s."
    )
    shares = (f"{k}: {share:.0%}" for k, share in enumerate(found["shares"]))
    say("Shares of the components in all amounts: " + ", ".join(shares))
    drops = (f"{k}: {drop:.3f}" for k, drop in enumerate(found["r2_drop"]))
    say(f"R²: {found['r2']:.3f}; what it falls by without a component: " + ", ".join(drops))
    say(f"Model: {found['model']}")
