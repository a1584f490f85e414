"""Problems of different shape for the benchmarks, and how the algorithms get to see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale as standardise

from seminmf import sample_skellam_snmf
from seminmf._algorithms.problem import Problem
from seminmf._data.dense import DenseSource
from seminmf._data.executor import local_executor
from seminmf._data.source import BlockSource, Data
from seminmf._data.summary import ANY_NUMBERS
from seminmf._model.likelihoods import LIKELIHOODS, Likelihood
from seminmf._model.model import Model, Priors
from seminmf.datasets import load_ionosphere, load_segment, load_shuttle, make_waveform

SEED = 0


class Case(NamedTuple):
    """A matrix (J, I) of float64, the number of components, and "real" or "integer"."""

    name: str
    X: NDArray[np.float64]
    n_components: int
    likelihood: str

    @property
    def title(self) -> str:
        """Name and sizes."""
        n_samples, n_features = self.X.shape
        return f"{self.name}, {n_samples} × {n_features}, K = {self.n_components}"

    def head(self, n_samples: int) -> Case:
        """The same with the first samples only."""
        return self._replace(X=self.X[:n_samples].copy())

    def problem(self, scale: float = 1.0) -> AbstractContextManager[Problem]:
        """The case in the unit that the estimators choose, so that objectives are theirs."""
        kind = LIKELIHOODS[self.likelihood]
        unit = kind.unit_for(float(np.abs(self.X).max()))
        return problem_of(self.X, self.n_components, kind(unit=unit, dispersion=scale))


@contextmanager
def problem_of(
    X: NDArray | BlockSource, n_components: int, likelihood: Likelihood, *, n_jobs: int = 1
) -> Iterator[Problem]:
    """A matrix as the algorithms see it, with the estimators' default priors."""
    priors = Priors.of(activation_shape=1.0, activation_rate=1e-3, atom_shape=1.0)
    model = Model.of(likelihood, priors, frozen=np.zeros(n_components, dtype=bool))
    source = DenseSource(X) if isinstance(X, np.ndarray) else X
    data = Data.unweighted(source, source.summarise(ANY_NUMBERS))
    with local_executor(n_jobs) as executor:
        yield Problem(model, data, executor)


# --- the problems: the paper's four come as they are, without scaling --------------------------


def _ionosphere() -> Case:
    return Case(name="ionosphere", X=load_ionosphere().data, n_components=2, likelihood="real")


def _waveform() -> Case:
    return Case(
        name="waveform", X=make_waveform(random_state=SEED)[0], n_components=3, likelihood="real"
    )


def _image() -> Case:
    return Case(name="image", X=load_segment().data, n_components=7, likelihood="real")


def _shuttle() -> Case:
    return Case(name="shuttle", X=load_shuttle().data, n_components=7, likelihood="real")


def _cancer() -> Case:
    return Case(
        name="cancer", X=standardise(load_breast_cancer().data), n_components=4, likelihood="real"
    )


def _digits() -> Case:
    return Case(
        name="digits",
        X=standardise(load_digits().data, with_std=False),
        n_components=10,
        likelihood="real",
    )


def _signed() -> Case:
    """Signed components with 30 % of their entries, gamma activations, normal noise."""
    random = np.random.default_rng(SEED)
    components = random.normal(size=(10, 100)) * (random.random((10, 100)) < 0.3)
    activations = random.gamma(1.0, 1.0, size=(3000, 10))
    X = activations @ components + 0.5 * random.normal(size=(3000, 100))
    return Case(name="signed", X=X, n_components=10, likelihood="real")


def _counts() -> Case:
    X, _, _ = sample_skellam_snmf(2000, 40, 5, atom_shape=0.5, random_state=SEED)
    return Case(name="counts", X=X, n_components=5, likelihood="integer")


PROBLEMS: dict[str, Callable[[], Case]] = {
    "ionosphere": _ionosphere,
    "waveform": _waveform,
    "image": _image,
    "shuttle": _shuttle,
    "cancer": _cancer,
    "digits": _digits,
    "signed": _signed,
    "counts": _counts,
}
