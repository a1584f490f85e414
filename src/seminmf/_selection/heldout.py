"""The likelihood of cells that the fit did not see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.stats import t

from .._kernels.em.estep import evaluate_cells
from .._model.likelihoods import Real
from .comparison import Comparison
from .density import log_density
from .fitting import fit
from .verdict import Verdict, judge, standard_error

# As many standard errors behind the best, hidden cells leave no doubt.
_CLEAR_ERRORS = 2.0
# How sure folds are to be that they agree, where each is one observation.
_SURE = 0.95


def hide(observed: NDArray, share: float, random: RandomState) -> NDArray:
    """A random share of the observed cells; of each row and column, one or more stay."""
    keep = np.zeros_like(observed)
    order = np.where(observed, random.uniform(size=observed.shape), -1.0)
    keep[np.arange(len(order)), order.argmax(axis=1)] = True
    keep[order.argmax(axis=0), np.arange(order.shape[1])] = True
    free = np.flatnonzero(observed & ~keep)
    n_hidden = min(len(free), max(1, round(share * int(observed.sum()))))
    hidden = np.zeros_like(observed)
    hidden.flat[random.choice(free, n_hidden, replace=False)] = True
    return hidden


def predict_hidden(
    comparison: Comparison, n_components: int, seed: int, hidden: NDArray
) -> NDArray:
    """Hidden cells, both their rates and the logarithm of their unit (4, cells), after a fit."""
    model = fit(comparison, np.where(hidden, np.nan, comparison.X), n_components, seed)
    rates = model.activations_ @ model.atoms_
    units = np.log(np.broadcast_to(comparison.scale, hidden.shape)[hidden])
    return np.array([comparison.X[hidden], *(rate[hidden] for rate in rates), units])


def log_likelihoods(cells: NDArray, comparison: Comparison) -> NDArray:
    """Log-likelihoods of hidden cells (4, cells) of one candidate, at the posterior means.

    Those of real data are −D/φ − ½ ln(2πφr), with the dispersion φ that suits them best. The rates
    alone promise a noise that is too small, by a factor of 1.3 to 1.6 where seven components were
    fitted to 10⁴ cells, and a candidate with larger rates would win by its noise and not its mean.
    """
    x, *rates, units = cells
    if not comparison.has_noise:
        return log_density(x, *rates)
    log_likelihood = evaluate_cells(Real(), x, *rates).log_likelihood
    dispersion = max(-2 * float(np.mean(log_likelihood)), np.finfo(float).tiny)
    density = Real(dispersion=dispersion).log_density(log_likelihood, x, *rates)
    return density - units


def conclude(
    numbers: Sequence[int],
    scores: NDArray,
    sizes: Sequence[int],
    unit: str = "nats for each hidden cell",
    within: float = 1.0,
) -> Verdict:
    """The smallest candidate within one standard error of the best, or within so many.

    `scores` is (K, cells), fold after fold, of which `sizes` are the numbers of cells. The error is
    that of the difference, since all candidates have the same cells hidden. Cells of a fold depend
    on each other by what was fitted to the rest, so folds are looked at as well.
    """
    import pandas

    mean = scores.mean(axis=1)
    differences = scores[np.argmax(mean)] - scores
    behind, error = differences.mean(axis=1), standard_error(differences)
    folds = np.split(differences, np.cumsum(sizes)[:-1], axis=1)
    of_folds = standard_error(np.column_stack([fold.mean(axis=1) for fold in folds]))
    error = np.fmax(error, of_folds)
    table = pandas.DataFrame(
        {
            "n_components": numbers,
            "score": mean,
            "standard_error": standard_error(scores),
            "n_runs": len(sizes),
            "behind": behind,
            "behind_error": error,
        }
    )
    best = int(np.flatnonzero(behind <= within * np.nan_to_num(error))[0])
    factor = _CLEAR_ERRORS if len(sizes) == 1 else max(_CLEAR_ERRORS, _student(len(sizes) - 1))
    close = behind <= factor * np.where(np.isnan(error), np.inf, error)
    return judge(numbers, table, best, close, unit)


def _student(freedom: int) -> float:
    """Standard errors beyond which a mean is not 0, at `_SURE`."""
    return float(t.ppf((1 + _SURE) / 2, freedom))
