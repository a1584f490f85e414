"""SkellamSNTF and BayesianSkellamSNTF: semi-nonnegative tensor models, written as strings."""

from __future__ import annotations

from os import PathLike
from typing import Any

from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from ._algorithms import tensor_em, tensor_vb
from ._algorithms.tensor import TensorProblem
from ._estimators.checkpoint import unlocks_checkpoint
from ._estimators.tensor import BaseSNTF
from ._estimators.transaction import fits


class SkellamSNTF(BaseSNTF):
    """Point."""

    _variational = False
    _algorithm = tensor_em
    _description = "EM"
    _trace = ("objectives_", "objective_")

    def __init__(
        self,
        model: Any,
        n_components: Any = 2,
        *,
        signed: Any = None,
        unit: str | None = None,
        likelihood: Any = "real",
        dispersion: Any = "auto",
        noise: Any = "auto",
        activation_shape_prior: Any = 1.0,
        activation_rate_prior: Any = "auto",
        atom_shape_prior: Any = 1.0,
        acceleration: str | None = "squarem",
        n_init: int | str = "auto",
        max_iter: int = 3000,
        tol: float = 1e-4,
        check_integer: bool = True,
        random_state: int | RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.model = model
        self.n_components = n_components
        self.signed = signed
        self.unit = unit
        self.likelihood = likelihood
        self.dispersion = dispersion
        self.noise = noise
        self.activation_shape_prior = activation_shape_prior
        self.activation_rate_prior = activation_rate_prior
        self.atom_shape_prior = atom_shape_prior
        self.acceleration = acceleration
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.check_integer = check_integer
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fits
    @unlocks_checkpoint
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        factors: Any = None,
        frozen: Any = None,
        sample_weight: ArrayLike | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> SkellamSNTF:
        """Fit to X."""
        self._fit(X, factors, frozen, sample_weight, checkpoint, checkpoint_every)
        return self

    def _first(self, problem: TensorProblem, arrays: list[NDArray]) -> list[NDArray]:
        return arrays


class BayesianSkellamSNTF(SkellamSNTF):
    """Posterior."""

    _variational = True
    _algorithm = tensor_vb
    _description = "VBEM"
    _trace = ("lower_bounds_", "lower_bound_")

    def _first(self, problem: TensorProblem, arrays: list[NDArray]) -> list[NDArray]:
        return tensor_vb.state_from(problem, arrays)
