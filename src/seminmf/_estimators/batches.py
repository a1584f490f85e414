"""Learning from batches of samples, which both Skellam estimators share."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from .._algorithms.loop import Result, Stopping
from .._algorithms.minibatch import Epochs, Learn, Stream
from .._algorithms.problem import Problem
from .._data.source import Data
from .._model.model import Priors
from . import validation as check
from .runs import Runner
from .skellam import BaseSkellamSNMF
from .transaction import goes_on


class BatchSkellamSNMF(BaseSkellamSNMF):
    """Base of the Skellam estimators, which learn from batches as well; not for direct use.

    An estimator has `_begin`, for what the first batch decides; `_first_stream`, what is known
    before it; `_learn` from a batch; and `_publish_batch`.
    """

    # Whether a prior's rate of 0 is refused.
    _needs_rate: bool

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.batch_size is not None:
            check.check_count("batch_size", self.batch_size)
        if self.total_samples is not None:
            check.check_count("total_samples", self.total_samples)

    def _check_batches(self, data: Data, **given: Any) -> None:
        """Refuse what a fit in batches cannot do."""
        if self.batch_size is None:
            return
        self._check_batch_priors(data.shape[1])
        if not data.source.is_local:
            raise ValueError(
                "batch_size must be None for a Dask array, whose chunks are all looked at in each "
                f"iteration; found {self.batch_size}."
            )
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name} must be None for a fit in batches; found a value.")

    @goes_on
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        cell_noise: ArrayLike | None = None,
    ) -> Any:
        """Learn from one more batch of samples, which are then forgotten.

        The first batch decides on the features, on the unit of computations and, where they are to
        be found, on the noise and the dispersion.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A batch of samples, NaN where not observed.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,)
            A weight of 2 counts as the sample twice.
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            As for `fit`.

        Returns
        -------
        self
            `activations_` are those of the batch.
        """
        self._check_parameters()
        self._check_kept()
        data = self._check_data(X, fitted=hasattr(self, "atoms_"), cell_noise=cell_noise)
        if not data.source.is_local:
            raise ValueError(
                "X must be a batch in memory for partial_fit; found a Dask array, which `fit` "
                "takes."
            )
        check.check_observed(data.summary)
        data = data._replace(weights=check.check_weight(sample_weight, data))
        priors = self._check_batch_priors(data.shape[1])
        if not hasattr(self, "atoms_"):
            self._begin(data, priors)
            check.record_features(self, X)
            self._keep_parameters()
        with self._problem_to_fit(data, priors) as problem:
            stream = getattr(self, "_stream", None) or self._first_stream(problem)
            total = self.total_samples or stream.n_samples + data.total_weight
            self._stream, result = self._learn(problem, stream, total)
            self._publish_batch(problem, result, total)
        return self

    def _check_kept(self) -> None:
        """Refuse to go on with parameters that would give another meaning to what was learned."""
        for name, kept in getattr(self, "_kept", {}).items():
            now = getattr(self, name)
            if now != kept:
                raise ValueError(
                    f"{name} must stay as it was for partial_fit, {kept!r}; found {now!r}."
                )

    def _check_batch_priors(self, n_features: int) -> Priors:
        """The priors, which must be those of any sample."""
        for name in ("activation_shape_prior", "activation_rate_prior"):
            found = np.shape(getattr(self, name))
            if len(found) == 2 and found[0] > 1:
                raise ValueError(
                    f"{name} must be the same for all samples when they come in batches; found an "
                    f"array of shape {found}."
                )
        return self._check_priors(1, n_features)

    def _check_priors(self, n_samples: int, n_features: int) -> Priors:
        """The priors, checked against the sizes of the data."""
        return check.check_priors(self, n_samples, n_features, positive_rate=self._needs_rate)

    def _publish_stream(self) -> None:
        """Set what all estimators have after a batch."""
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        self.converged_, self.stop_reason_ = False, "max_iter"
        self._publish_starts(np.full(len(self.components_), np.nan), 1)

    def _run_batches(
        self, problem: Problem, runner: Runner, learn: Learn, atoms: NDArray, random: RandomState
    ) -> Result[Stream]:
        """Epochs over all samples in batches, until one gains little on that before it.

        The objectives are those that batches had on the way; what comes first is not known.
        """
        epochs = Epochs(learn, self.batch_size, random)
        begin = partial(Stream.from_atoms, atoms)
        stopping = Stopping(self.max_iter, self.tol, window=1, of_following=True)
        result = runner.run(epochs, problem, begin, "epochs", stopping)
        # A run that ended at an earlier time leaves the random numbers where it left them then.
        epochs.skip_to(problem, result.n_iter)
        return result
