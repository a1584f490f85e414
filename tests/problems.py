"""Problems of the algorithms, built from arrays, for tests that do without an estimator."""

import numpy as np

from seminmf._algorithms.problem import Problem
from seminmf._data.dense import DenseSource
from seminmf._data.executor import LocalExecutor
from seminmf._data.source import Data
from seminmf._data.summary import ANY_NUMBERS
from seminmf._model.model import Model, Priors


def data_of(X, weights=None, source=None):
    """X as the data of a fit, or a source that stands for it."""
    source = DenseSource(X) if source is None else source
    data = Data.unweighted(source=source, summary=source.summarise(ANY_NUMBERS))
    return data if weights is None else data._replace(weights=weights)


def problem_of(
    data,
    likelihood,
    n_components,
    *,
    activation_shape=1.0,
    activation_rate=1e-3,
    atom_shape=1.0,
    frozen=(),
    n_threads=1,
):
    """The problem of some data, with priors of any shape and the components that are frozen."""
    priors = Priors.of(
        activation_shape=activation_shape, activation_rate=activation_rate, atom_shape=atom_shape
    )
    mask = np.isin(np.arange(n_components), frozen)
    model = Model.of(likelihood=likelihood, priors=priors, frozen=mask)
    return Problem(model=model, data=data, executor=LocalExecutor(n_threads))
