"""Priors learned from a stream: the paper's online experiment, with its rule and with ours.

A stream has matrices of 5000 samples and 3 features, with 2 components, whose parameters are drawn
anew from one prior, "low uncertainty, low variance". The learner starts from a prior that says
nothing, and never sees the parameters.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .. import BayesianSkellamSNMF, PriorLearner, load
from .._views.pictures import BLUE, ORANGE
from ._frame import Findings, Settings
from ._runs import Run, fingerprint
from ._scenarios import (
    N_FEATURES,
    PUBLISHED,
    SCENARIOS,
    Truth,
    draw_seeds,
    in_best_order,
    mse_m,
    mse_v,
)
from ._tables import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

DEFAULT_RUNS = 5
SCENARIO = "low uncertainty, low variance"
# The one that benchmarks and tests have, too.
STREAM = PUBLISHED[SCENARIO]
N_COMPONENTS = len(STREAM.activation_shapes)
N_SAMPLES, N_MATRICES, FEW_MATRICES = 5000, 1300, 60
# Matrices of one run, after which the learner is saved.
PIECE = 50
# Matrices at the end that are compared with the true prior, and those over which curves are smooth.
LAST, WINDOW = 100, 30
# A stream is good if its error is below this share of the start's from some matrix on, and mse_m at
# the end is within this factor of what the true prior reaches.
SMALL_ERROR, NEAR, AT_THE_LATEST = 0.1, 1.15, 600
LOOKED_AT = (100, 300, 600)

TRUE = "true prior"
# Each matrix until variational Bayes has converged, then the update with c = 0.02, as in the paper;
# or what `PriorLearner` does by itself, for which a few iterations are enough to begin with.
RULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "paper": (
        {"learning_rate": 0.02, "posterior": "mean-field", "hyperprior": 0.0},
        {"acceleration": "parabolic", "max_iter": 5000, "tol": 1e-7},
    ),
    "seminmf": ({"learning_rate": "annealed"}, {"max_iter": 20, "tol": 1e-3}),
}
REFERENCE: dict[str, Any] = {"init": "prior", "max_iter": 300, "tol": 1e-4}
_COLOURS = {"paper": ORANGE, "seminmf": BLUE}


def counts(**parameters: Any) -> BayesianSkellamSNMF:
    """An estimator for integers, on one core."""
    defaults: dict[str, Any] = {"likelihood": "integer", "n_jobs": 1, "random_state": 0}
    defaults |= {"posterior": "mean-field", "activation_shape_prior": 1.0, "atom_shape_prior": 1.0}
    return BayesianSkellamSNMF(N_COMPONENTS, **(defaults | parameters))


def neutral(seed: int, rule: str = "seminmf") -> BayesianSkellamSNMF:
    """The estimator whose prior says nothing, of which a learner starts."""
    shape = 1 + 1e-5 * RandomState(seed + 77).uniform(size=(2, N_COMPONENTS, N_FEATURES))
    return counts(atom_shape_prior=shape, activation_rate_prior=1e-3, **RULES[rule][1])


def shape_error(truth: Truth, atom_shape: NDArray) -> float:
    """Mean square error of the atoms' shapes."""
    shapes = np.broadcast_to(atom_shape, truth.atom_shape.shape)
    return in_best_order(lambda s: float(np.mean((s - truth.atom_shape) ** 2)), shapes)


def source_errors(
    atoms: NDArray, activations: NDArray, model: BayesianSkellamSNMF
) -> tuple[float, float]:
    """mse_m and mse_v of a fit, each in its best order."""
    of_means, of_variances = (
        in_best_order(partial(error, atoms, activations), model.atoms_, model.activations_)
        for error in (mse_m, mse_v)
    )
    return of_means, of_variances


# --- runs ---------------------------------------------------------------------------------------


def plan(settings: Settings) -> list[list[Run]]:
    """A chain for each draw and rule, and the fits with the true prior to compare with."""
    n_matrices = number_of_matrices(settings)
    n_samples = settings.options.get("samples", N_SAMPLES)
    scenario = (PUBLISHED if settings.options.get("published") else SCENARIOS)[SCENARIO]
    chains = []
    for seed in draw_seeds(settings.seed, settings.runs):
        stream = Stream(scenario.draw(seed), seed, n_samples)
        for rule in (*RULES, TRUE):
            first = max(n_matrices - LAST, 0) if rule == TRUE else 0
            work = _reference if rule == TRUE else partial(_learn, settings.out, rule)
            chain = []
            for start in range(first, n_matrices, PIECE):
                stop = min(start + PIECE, n_matrices)
                key = {"rule": rule, "draw": seed, "start": start, "stop": stop}
                key |= {"samples": n_samples, "atom_shapes": list(scenario.atom_shapes)}
                chain.append(Run(key, partial(work, stream, start, stop)))
            chains.append(chain)
    return chains


def number_of_matrices(settings: Settings) -> int:
    """Those asked for; else the paper's, or few of them for fewer draws than the paper's."""
    default = N_MATRICES if settings.runs >= DEFAULT_RUNS else FEW_MATRICES
    return int(settings.options.get("matrices", default))


class Stream(NamedTuple):
    """Where matrices come from."""

    truth: Truth
    seed: int
    n_samples: int

    def matrix(self, number: int) -> tuple[NDArray, NDArray, NDArray]:
        """Data, atoms and activations."""
        return self.truth.matrix(self.seed, number, self.n_samples)


def _learn(folder: Path, rule: str, stream: Stream, start: int, stop: int) -> dict[str, Any]:
    """Some more matrices of a stream, from where the learner was saved."""
    warnings.simplefilter("ignore")
    truth = stream.truth
    name = f"{rule}-{fingerprint(truth.atom_shape)}-{stream.n_samples}"

    def file(number: int) -> Path:
        return folder / f"{name}-{number}.safetensors"

    learner = _learner_at(start, file, rule, stream)
    found: dict[str, Any] = {"errors": [], "mse_m": [], "mse_v": [], "seconds": []}
    found["first_error"] = shape_error(truth, np.ones(1))
    for number in range(start, stop):
        X, atoms, activations = stream.matrix(number)
        begin = time.perf_counter()
        learner.partial_fit(X)
        found["seconds"].append(time.perf_counter() - begin)
        found["errors"].append(shape_error(truth, learner.estimator_.atom_shape_prior))
        of_means, of_variances = source_errors(atoms, activations, learner.last_)
        found["mse_m"].append(of_means)
        found["mse_v"].append(of_variances)
    learner.save(file(stop))
    # The last but one stays, for a stop before this result is written down.
    file(start - PIECE).unlink(missing_ok=True)
    return found


def _learner_at(start: int, file: Callable[[int], Path], rule: str, stream: Stream) -> PriorLearner:
    """The learner after `start` matrices; what it learned since its last file is learned again."""
    saved = next((number for number in range(start, 0, -1) if file(number).exists()), 0)
    if saved:
        learner = load(file(saved))
    else:
        learner = PriorLearner(neutral(stream.seed, rule), **RULES[rule][0])
    for number in range(saved, start):
        learner.partial_fit(stream.matrix(number)[0])
    return learner


def _reference(stream: Stream, start: int, stop: int) -> dict[str, Any]:
    """What variational Bayes makes of some matrices with the true prior."""
    warnings.simplefilter("ignore")
    pairs = []
    for number in range(start, stop):
        X, atoms, activations = stream.matrix(number)
        model = counts(**REFERENCE, **stream.truth.parameters()).fit(X)
        pairs.append(source_errors(atoms, activations, model))
    of_means, of_variances = zip(*pairs, strict=True)
    return {"mse_m": list(of_means), "mse_v": list(of_variances)}


# --- findings -----------------------------------------------------------------------------------


def findings(found: pd.DataFrame, settings: Settings) -> Findings:
    """How each stream ends, how many are good, and the paper's figure."""
    curves = {
        (rule, draw): {
            name: np.concatenate([np.asarray(piece, dtype=float) for piece in part[name]])
            for name in ("errors", "mse_m", "mse_v", "seconds")
            if not part[name].isna().any()
        }
        for (rule, draw), part in found.sort_values("start").groupby(["rule", "draw"])
    }
    draws = sorted(set(found["draw"]))
    first = found.groupby("draw")["first_error"].max()
    ends = {(rule, draw): _end(curves, rule, draw, first[draw]) for rule in RULES for draw in draws}
    tables = [_summary(ends, draws, number_of_matrices(settings)), _streams(ends), _fits(ends)]
    return Findings(tables, {"online": _picture(curves, draws)})


def _end(
    curves: dict[tuple[str, int], dict[str, NDArray]], rule: str, draw: int, first_error: float
) -> dict[str, Any]:
    """A stream in numbers; errors as shares of that of the start."""
    own, true = curves[rule, draw], curves[TRUE, draw]
    share = own["errors"] / first_error
    settled = 1 + int(np.flatnonzero(share >= SMALL_ERROR).max(initial=-1))
    n_compared = len(true["mse_m"])
    ratios = {
        name: own[name][-n_compared:].mean() / true[name].mean() for name in ("mse_m", "mse_v")
    }
    latest = min(AT_THE_LATEST, len(share) - 1)
    good = settled <= latest and ratios["mse_m"] <= NEAR
    seconds = float(np.median(own["seconds"]))
    return {"share": share, "settled": settled, "good": good, "seconds": seconds, **ratios}


def _summary(ends: dict[tuple[str, int], dict[str, Any]], draws: list[int], n: int) -> Table:
    rows = [["the paper's runs, 1300 matrices", "2 of 5"]]
    for rule, label in (("paper", "its rule, here"), ("seminmf", "PriorLearner, annealed")):
        n_good = sum(ends[rule, draw]["good"] for draw in draws)
        rows.append([f"{label}, {n} matrices", f"{n_good} of {len(draws)}"])
    return Table("summary", "Streams that were learned from", ["rule", "good"], rows)


def _streams(ends: dict[tuple[str, int], dict[str, Any]]) -> Table:
    """Errors of the hyperparameters."""
    rows = []
    for (rule, draw), end in ends.items():
        share, settled = end["share"], end["settled"]
        row = [rule, str(draw), str(settled) if settled < len(share) else "never"]
        row += [f"{share[n - 1]:.3f}" if n <= len(share) else "" for n in LOOKED_AT]
        later = share[AT_THE_LATEST - 1 :]
        row += [f"{later.max():.3f}" if len(later) else "", f"{share[-1]:.3f}"]
        rows.append(row)
    columns = ["rule", "draw", f"below {SMALL_ERROR:.0%} from", *(f"at {n}" for n in LOOKED_AT)]
    columns += [f"largest from {AT_THE_LATEST}", "at the end"]
    title = "Mean square error of the atoms' shapes, as a share of that of the start"
    return Table("shapes", title, columns, rows)


def _fits(ends: dict[tuple[str, int], dict[str, Any]]) -> Table:
    """Errors of the parameters."""
    rows = [
        [
            rule,
            str(draw),
            f"{end['mse_m']:.2f}",
            f"{end['mse_v']:.2f}",
            f"{end['seconds']:.2f}",
            "yes" if end["good"] else "no",
        ]
        for (rule, draw), end in ends.items()
    ]
    title = f"The last {LAST} matrices at most: errors over those with the true prior; median time"
    return Table("fits", title, ["rule", "draw", "mse_m", "mse_v", "s a matrix", "good"], rows)


def smooth(values: NDArray) -> NDArray:
    """Means over a window, which is shorter at the start."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(sums))
    begins = np.maximum(ends - WINDOW, 0)
    return (sums[ends] - sums[begins]) / (ends - begins)


def _picture(curves: dict[tuple[str, int], dict[str, NDArray]], draws: list[int]) -> Figure:
    """Errors of hyperparameters and of parameters, one line for each draw and rule."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.2), layout="constrained")
    panels = figure.subplots(1, 3)
    titles = {
        "errors": "mean square error of the atoms' shapes",
        "mse_m": f"mse_m, mean over {WINDOW} matrices",
        "mse_v": f"mse_v, mean over {WINDOW} matrices",
    }
    for axes, (name, title) in zip(panels, titles.items(), strict=True):
        for draw in draws:
            for rule, colour in _COLOURS.items():
                values = curves[rule, draw][name]
                values = values if name == "errors" else smooth(values)
                axes.plot(np.arange(1, len(values) + 1), values, color=colour, alpha=0.7, lw=1)
        axes.set(title=title, xlabel="number of matrices", yscale="log")
        axes.title.set_fontsize("medium")
        axes.grid(alpha=0.3)
    labels = {"paper": "the paper's rule", "seminmf": "PriorLearner"}
    handles = [
        panels[0].plot([], [], color=_COLOURS[rule], label=labels[rule])[0] for rule in RULES
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure
