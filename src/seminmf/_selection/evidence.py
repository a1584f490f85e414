"""The evidence of the data: the bound with the gaps closed that the mean field leaves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.special import gammaln

from .._model.priors import Dirichlet
from ..bayesian import BayesianSkellamSNMF
from .comparison import Comparison
from .density import sensitivity
from .fitting import fit
from .importance import Draws
from .verdict import Verdict, judge, standard_error

# The approximations of the evidence are good to about this many nats.
_CLEAR_LEAD = 10.0
# A lead is to be as many times what the best two starts differ by: another start leaves no doubt.
_CLEAR_ERRORS = 2.0


def evidence_of_run(comparison: Comparison, n_components: int, seed: int) -> tuple[float, float]:
    """Evidence and bound after one start, both with ln K! for the equivalent labelings."""
    X = comparison.X
    model = fit(comparison, X, n_components, seed)
    sensitivities = sensitivity(X, model.activations_, model.atoms_)
    draws = Draws.of(X, model, sensitivities, n_components, RandomState(seed))
    if comparison.learn_prior:
        draws = draws.with_best_prior()
    evidence = draws.evidence() + _occam_factor_of_atoms(model, sensitivities, n_components)
    # Densities are those of X in its own unit, and count the labelings.
    constant = gammaln(n_components + 1) + comparison.log_unit(~np.isnan(X))
    return evidence + constant, model.lower_bound_ + constant


def _occam_factor_of_atoms(
    model: BayesianSkellamSNMF, sensitivities: tuple[NDArray, NDArray], n_components: int
) -> float:
    """What not knowing the atoms costs: −KL of their posterior, made wider as it should be.

    The mean-field posterior takes the counts behind the data as known. The information H of the
    data themselves about ln θ is smaller, and connects the components: hence ½ (Σ ln α̂ − ln det H),
    and −½ tr for the likelihood, which was taken at the posterior mean.
    """
    shape = model.atom_shape_[:, :n_components]
    prior = np.broadcast_to(model.atom_shape_prior, model.atom_shape_.shape)[:, :n_components]
    dirichlet = Dirichlet(prior)
    divergence = dirichlet.geometric_means(shape)[1] + dirichlet.bound_constant(prior.shape)
    information = _information(model, sensitivities, n_components)
    diagonal = np.arange(2 * n_components)
    counts, prior_counts = (
        a.transpose(2, 0, 1).reshape(-1, 2 * n_components) for a in (shape, prior)
    )
    blur = np.sum(information[:, diagonal, diagonal] / counts)
    information[:, diagonal, diagonal] += prior_counts
    volume = np.sum(np.log(counts)) - np.sum(np.linalg.slogdet(information)[1])
    return divergence + 0.5 * float(volume - blur)


def _information(
    model: BayesianSkellamSNMF, sensitivities: tuple[NDArray, NDArray], n_components: int
) -> NDArray:
    """What the data say about ln θ (2K of them) of each feature, (I, 2K, 2K)."""
    activations = model.activations_[:, :n_components]
    slopes = np.concatenate(
        [
            np.einsum("ji,jk,ki->ijk", g, activations, atoms[:n_components])
            for g, atoms in zip(sensitivities, model.atoms_, strict=True)
        ],
        axis=2,
    )
    return slopes.transpose(0, 2, 1) @ slopes


def conclude(numbers: Sequence[int], runs: NDArray) -> Verdict:
    """The candidate with the most evidence; `runs` is (candidates, starts, 2)."""
    import pandas

    evidence, bounds = runs[..., 0], runs[..., 1]
    score = evidence.max(axis=1)
    behind = score.max() - score
    best = int(np.argmin(behind))
    # An optimum that two starts found is found; worse ones say nothing of what a better one has.
    ordered = np.sort(evidence, axis=1)
    gap = ordered[:, -1] - ordered[:, -2] if evidence.shape[1] > 1 else np.full(len(score), np.nan)
    error = np.hypot(gap, gap[best])
    table = pandas.DataFrame(
        {
            "n_components": numbers,
            "score": score,
            "standard_error": standard_error(evidence),
            "n_runs": evidence.shape[1],
            "behind": behind,
            "behind_error": error,
            "lower_bound": bounds.max(axis=1),
        }
    )
    doubt = _CLEAR_ERRORS * np.where(np.isnan(error), np.inf, error)
    close = behind <= np.maximum(_CLEAR_LEAD, doubt)
    return judge(numbers, table, best, close, "nats of evidence")
