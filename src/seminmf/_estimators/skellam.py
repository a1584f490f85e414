"""What both Skellam estimators share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._algorithms.acceleration import METHODS as ACCELERATIONS
from .._algorithms.problem import Prior, Problem
from .._algorithms.start import METHODS as STARTS
from .._data.executor import HERE, Place, per_sample
from .._data.opening import ZEROS
from .._data.source import Elsewhere, row_ranges
from .._data.sparse import SparseSource
from .._data.summary import power_of_two
from .._data.threads import pool
from .._kernels.compiled import announced
from .._kernels.em.estep import Cells, evaluate_cells
from .._model.likelihoods import Integer, Real
from . import validation as check
from .base import BaseSNMF, Data, fill

# Below this share of the mean |x| a dispersion is no noise but rounding.
_LEAST_DISPERSION = 1e-12
# Posterior rates have the dispersion as their divisor: it must leave room for them.
_SMALLEST_DISPERSION = 1e-300
# Computations run in a unit of at least this, in the unit of the priors.
_LEAST_UNIT = {"float32": 1e-3, "float64": 1e-12}


class BaseSkellamSNMF(BaseSNMF):
    """Base of the Skellam estimators; not for direct use."""

    _starts: tuple[str, ...] = STARTS
    _default_for_unobserved = "what the prior says"

    # --- the frame of a fit -----------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_choice("likelihood", self.likelihood, ("real", "integer"))
        check.check_choice("acceleration", self.acceleration, ACCELERATIONS)
        check.check_choice("sparse_zeros", self.sparse_zeros, ZEROS)

    def _accepted_values(self) -> check.Accepted:
        if self.likelihood == "integer":
            return check.Accepted(self.check_integer, check.LARGEST_INTEGER)
        return check.ANY_NUMBERS

    def _choose_unit(self, data: Data, scale: float | None = None) -> None:
        """Fix the unit that computations run in: no overflow, whatever the unit of X.

        Where priors speak in units of `scale`, X may be nothing against them; they are then what
        must not overflow.
        """
        largest = data.summary.largest
        name = data.source.dtype.name
        least = _LEAST_UNIT[name] * scale if scale and largest > 0 else 0.0
        # Its inverse is a factor of the same type.
        least = max(least, 2.0**-120) if name == "float32" and largest > 0 else least
        integer = self.likelihood == "integer"
        self._unit = 1.0 if integer else power_of_two(max(largest, least))

    @contextmanager
    def _problem(self, data: Data, prior: Prior, scale: float, **others: Any) -> Iterator[Problem]:
        """The problem that passes and algorithms see, with its threads, for a while."""
        likelihood = Integer() if self.likelihood == "integer" else Real(self._unit)
        others = {
            "sample_weight": np.ones(data.source.shape[0]),
            "frozen": np.zeros(self.n_components, dtype=bool),
            **others,
        }
        place: Place = HERE
        if isinstance(data.source, Elsewhere) and data.chunks is not None:
            place = data.source.place(data.chunks, prior, others["sample_weight"])
        with announced(), pool(self.n_jobs) as workers:
            yield Problem(
                data.source,
                data.summary,
                likelihood,
                self._unit / scale,
                prior,
                pool=workers,
                place=place,
                **others,
            )

    # --- after the fit ----------------------------------------------------------------------

    @property
    def components_(self) -> NDArray:
        """Signed components (K, I): positive minus negative part of the atoms."""
        return self.atoms_[0] - self.atoms_[1]

    def _is_solved(self) -> bool:
        return self.converged_ or self._per_sample_prior()

    def _check_transformable(self) -> None:
        super()._check_transformable()
        if self._per_sample_prior():
            raise ValueError(
                "transform needs priors that hold for any sample; found an activation prior with "
                f"one row for each of the {self._prior_rows()} samples of the fit."
            )

    def _prior_rows(self) -> int:
        return max(len(self._prior.activation_shape), len(self._prior.activation_rate))

    def _per_sample_prior(self) -> bool:
        return self._prior_rows() > 1

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the observed cells, given their samples' activations.

        For likelihood "integer" it is the mean of ln P. For "real" it is the mean of the saddle-
        point density −D/φ − ½ ln(2πφr), with the dispersion φ of the training data: −D alone would
        favour ever larger rates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        y : None
            Not used.

        Returns
        -------
        float
        """
        self._check_transformable()
        noise = self.dispersion_ if self.likelihood == "real" else None
        with self._fitted_problem(self._check_data(X)) as problem:
            rows = (self._solve_rows(problem),)
            _, (total, n_observed) = problem.over_samples(_score_samples, rows, self.atoms_, noise)
        return total / n_observed

    def sources(self, X: Any) -> NDArray:
        """Expected share of each component in each cell; the shares sum to X.

        In a gap they sum to what `impute` fills in.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.

        Returns
        -------
        ndarray of shape (n_samples, n_features, n_components)
        """
        self._check_transformable()
        with self._fitted_problem(self._check_data(X)) as problem:
            rows = (self._solve_rows(problem),)
            (sources,), _ = problem.over_samples(_source_samples, rows, self.atoms_)
            return np.asarray(sources)

    @contextmanager
    def _fitted_problem(self, data: Data) -> Iterator[Problem]:
        """The problem of other samples, with the prior of the fit."""
        with self._problem(data, self._prior, self._prior_scale()) as problem:
            yield problem

    def _solve(self, data: Data) -> NDArray:
        with self._fitted_problem(data) as problem:
            return self._hand_out(problem, self._solve_rows(problem))

    def _hand_out(self, problem: Problem, rows: Any) -> Any:
        """An array with a column for each component, as users get it."""
        return problem.place.handed_out(rows, self.n_components, problem.source.dtype)

    def _fill(self, X: Any, data: Data, activations: NDArray | None = None) -> Any:
        if data.chunks is None:
            return super()._fill(X, data, activations)
        with self._fitted_problem(data) as problem:
            rows = (self._solve_rows(problem),)
            (filled,), _ = problem.over_samples(_fill_samples, rows, self.components_)
            return problem.place.handed_out(filled, data.source.shape[1], data.source.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def count_observed(problem: Problem) -> float:
    """Number of observed cells, with the samples' weights."""
    _, (number,) = problem.over_samples(_count_samples, ())
    return number


@per_sample(sums=1)
def _count_samples(problem: Problem) -> tuple[tuple, tuple]:
    return (), (float(problem.summary.row_count @ problem.sample_weight),)


def dispersion(problem: Problem, divergence: float) -> float:
    """φ = 2 ΣD / (observed cells − K (I + J)), the noise level of real data, in the unit of ΣD.

    A sample counts as often as its weight says.
    """
    summary, weight = problem.summary, float(problem.sample_weight.sum())
    n_parameters = problem.n_components * (problem.source.shape[1] + weight)
    estimate = 2 * divergence / max(count_observed(problem) - n_parameters, 1.0)
    if summary.largest == 0:
        return 1.0
    return max(estimate, _LEAST_DISPERSION * summary.mean_size, _SMALLEST_DISPERSION)


# --- what is done with the samples of a problem, or with a part of them ---------------------------


def _evaluated(
    problem: Problem, activations: NDArray, atoms: NDArray, *, dense: bool = False
) -> Iterator[tuple[NDArray, NDArray, NDArray, Cells]]:
    """Cells in the unit of X, their samples' activations, their rates, and what is to say of them.

    They come in blocks of samples; of a sparse matrix with gaps as rows of stored cells, unless
    `dense`.
    """
    source, likelihood = problem.source, problem.likelihood
    likelihood = likelihood if isinstance(likelihood, Integer) else Real(1.0)
    activations, atoms = activations.astype(np.float64), atoms.astype(np.float64)
    if isinstance(source, SparseSource) and not dense:
        for samples, features, x in source.stored():
            own = activations[samples]
            rates = np.einsum("nk,skn->sn", own, atoms[:, :, features])
            yield x, own, rates, evaluate_cells(likelihood, x, *rates)
        return
    for rows in row_ranges(source):
        for part, x in source.blocks(*rows):
            rates = activations[part] @ atoms
            yield x, activations[part], rates, evaluate_cells(likelihood, x, *rates)


@per_sample(sums=2)
def _score_samples(
    problem: Problem, activations: NDArray, atoms: NDArray, phi: float | None
) -> tuple[tuple, tuple]:
    """Log-likelihood of the observed cells, and their number; `phi` is the dispersion."""
    total, n_observed = 0.0, 0
    for x, _, (rate0, rate1), cells in _evaluated(problem, activations, atoms):
        terms = cells.log_likelihood
        if phi is not None:
            root = np.hypot(x, 2 * np.sqrt(rate0) * np.sqrt(rate1))
            # Where x and both rates vanish there is no density: such a cell counts as a
            # hundredth of the noise.
            logarithm = np.log(2 * np.pi) + np.log(phi) + np.log(np.maximum(root, 1e-2 * phi))
            terms = terms / phi - 0.5 * logarithm
        observed = ~np.isnan(x)
        total += float(np.sum(terms[observed]))
        n_observed += int(observed.sum())
    return (), (total, n_observed)


@per_sample(rows=1)
def _source_samples(problem: Problem, activations: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    """E[Z_0k − Z_1k | x] = λ_k (θ_0k U_0 − θ_1k U_1): the diffnomial's mean."""
    blocks = []
    for x, own, _, cells in _evaluated(problem, activations, atoms, dense=True):
        positive = np.einsum("ji,ki->jik", cells.u0, atoms[0])
        negative = np.einsum("ji,ki->jik", cells.u1, atoms[1])
        blocks.append((own[:, None, :] * (positive - negative)).astype(x.dtype, copy=False))
    return (np.concatenate(blocks),), ()


@per_sample(rows=1)
def _fill_samples(
    problem: Problem, activations: NDArray, components: NDArray
) -> tuple[tuple, tuple]:
    """X with its gaps filled."""
    return (fill(problem.source, activations, components),), ()
