"""Start values: "auto", "random", "kmeans", "svd" and "prior"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._data.executor import per_sample
from .._data.source import all_blocks
from .._data.summary import Summary
from .._model.model import split_signed
from .._model.priors import normalise
from .em import Factors
from .problem import Problem

# "auto" is "random" here; the search for noise has more ways.
METHODS = ("auto", "random", "kmeans", "svd", "prior")

# K-means and SVD look at this many samples at the most, and at no more cells than this.
_MOST_ROWS, _LEAST_ROWS = 10_000, 1_000
_MOST_CELLS = 1 << 25
# Share of an atom that is spread over all entries of both signs: EM cannot leave a zero.
_SPREAD = 0.2


class Filled(NamedTuple):
    """Blocks of a source in the problem's unit, with gaps filled by the features' means."""

    source: Any
    means: NDArray
    unit: float

    @classmethod
    def from_summary(cls, source: Any, summary: Summary, unit: float) -> Filled:
        """With the means that a summary tells."""
        return cls(source, summary.column_sum / np.maximum(summary.column_count, 1) / unit, unit)

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop`, without gaps."""
        return self._filled(self.source.rows(start, stop))

    def _filled(self, block: NDArray) -> NDArray:
        block = block / self.unit
        return np.where(np.isnan(block), self.means, block)

    def sample(self, random: RandomState) -> NDArray:
        """Some samples, drawn without replacement; all, if they are few."""
        total, n_features = self.source.shape
        n_samples = min(_MOST_ROWS, max(_LEAST_ROWS, _MOST_CELLS // n_features))
        if total <= n_samples:
            return self.rows(0, total)
        return self._filled(self.source.take(np.sort(random.choice(total, n_samples, False))))

    def map(self, function: Callable[[NDArray], NDArray]) -> NDArray:
        """What a function makes of all samples, block by block."""
        return np.concatenate(
            [function(self._filled(block.X)) for block in all_blocks(self.source)]
        )


def start(problem: Problem, method: str, random: RandomState) -> Factors:
    """Activations and atoms to start from, in the type of the data."""
    n_components, n_features = problem.n_components, problem.data.shape[1]
    if method == "prior":
        atoms = _prior_atoms(problem, random)
        rows, _ = problem.over_samples(_prior_samples, ())
    elif method in ("auto", "random"):
        atoms = normalise(random.uniform(size=(2, n_components, n_features)))
        rows, _ = problem.over_samples(_share_samples, (), 1.0, _least_share(problem))
    else:
        filled = Filled.from_summary(
            problem.data.source, problem.data.summary, problem.model.likelihood.unit
        )
        build = from_kmeans if method == "kmeans" else from_svd
        components, activate = build(filled, n_components, random)
        atoms = _spread(components)
        look = (filled.means, activate)
        rows, _ = problem.over_samples(_share_samples, (), _SPREAD, _least_share(problem), look)
    return Factors(rows[0], atoms.astype(problem.dtype, order="C"))


def _least_share(problem: Problem) -> float:
    """A small share of Σ|x|, above 0: EM cannot leave a zero."""
    _, (total,) = problem.over_samples(_sum_shares, ())
    mean = total / problem.data.shape[0]
    return 1e-3 * mean if mean > 0 else 1.0


@per_sample(sums=1)
def _sum_shares(problem: Problem) -> tuple[tuple, tuple]:
    return (), (float(_shares(problem).sum()),)


def _shares(problem: Problem) -> NDArray:
    return problem.data.shares(problem.model.likelihood.unit, problem.n_components)


@per_sample(rows=1)
def _share_samples(
    problem: Problem,
    part: float,
    least: float,
    look: tuple[NDArray, Activate] | None = None,
) -> tuple[tuple, tuple]:
    """Activations that are a part of the samples' shares, and what a look at the data adds."""
    n_components = problem.n_components
    activations = np.tile(part * np.maximum(_shares(problem)[:, None], least), (1, n_components))
    if look is not None:
        means, activate = look
        activations += Filled(problem.data.source, means, problem.model.likelihood.unit).map(
            activate
        )
    # Where X is nothing against the prior, EM would have to start from 0.
    prior = problem.model.activations.prior
    activations = activations + np.maximum(prior.shape - 1, 0) / problem.mass / (1 + prior.rate)
    return (activations.astype(problem.dtype, order="C"),), ()


@per_sample(rows=1)
def _prior_samples(problem: Problem) -> tuple[tuple, tuple]:
    """Prior means of the activations, as in the paper's first experiment: α / (1 + β)."""
    prior = problem.model.activations.prior
    size = (problem.data.shape[0], problem.n_components)
    activations = np.broadcast_to(prior.shape / (1 + prior.rate) / problem.mass, size)
    return (activations.astype(problem.dtype, order="C"),), ()


def _prior_atoms(problem: Problem, random: RandomState) -> NDArray:
    """Prior means of the atoms, α / Σα."""
    shape = (2, problem.n_components, problem.data.shape[1])
    atoms = problem.model.atoms.prior.mean(shape)
    if np.all(atoms == atoms[:, :1]) and problem.n_components > 1:
        # Equal components would stay equal for ever.
        atoms = normalise(atoms * random.uniform(0.9, 1.1, size=atoms.shape))
    return atoms


class Activate(Protocol):
    """Tells which activations (n, K) some samples have."""

    def __call__(self, block: NDArray) -> NDArray:
        """Those of samples without gaps."""
        ...


@dataclass(frozen=True)
class _Clusters:
    """Each sample is active in the component of its cluster."""

    means: Any
    sizes: NDArray

    def __call__(self, block: NDArray) -> NDArray:
        labels = self.means.predict(block.astype(self.means.cluster_centers_.dtype))
        activations = np.zeros((len(labels), len(self.sizes)))
        activations[np.arange(len(labels)), labels] = self.sizes[labels]
        return activations


@dataclass(frozen=True)
class _Projections:
    """Positive projections on components of unit length, for atoms of unit sum."""

    components: NDArray

    def __call__(self, block: NDArray) -> NDArray:
        sizes = np.abs(self.components).sum(axis=1)
        return np.maximum(block @ self.components.T, 0) * sizes


def from_kmeans(filled: Filled, n_components: int, random: RandomState) -> tuple[NDArray, Activate]:
    """Cluster centres, and each sample active in the component of its cluster."""
    from sklearn.cluster import KMeans

    sample = filled.sample(random)
    n_clusters = min(n_components, len(np.unique(sample, axis=0)))
    means = KMeans(n_clusters, n_init=1, random_state=random).fit(sample)
    centres = means.cluster_centers_.astype(np.float64)
    # Fewer distinct samples than components: the rest start near the centres there are.
    extra = centres[random.randint(n_clusters, size=n_components - n_clusters)]
    components = np.concatenate([centres, extra * random.uniform(0.5, 1.5, size=extra.shape)])
    return components, _Clusters(means, np.abs(components).sum(axis=1))


def from_svd(filled: Filled, n_components: int, random: RandomState) -> tuple[NDArray, Activate]:
    """Singular vectors, each after the first with both signs, and the positive projections.

    Activations cannot be negative, so a direction that samples take both ways needs two components.
    """
    from sklearn.utils.extmath import randomized_svd

    sample = filled.sample(random)
    rank = min(n_components // 2 + 1, *sample.shape)
    left, _, right = randomized_svd(sample, n_components=rank, random_state=random)
    right = right * np.where(left.sum(axis=0) < 0, -1, 1)[:, None]
    signed = [right[0]]
    for vector in right[1:]:
        signed += [vector, -vector]
    while len(signed) < n_components:
        signed.append(random.normal(size=right.shape[1]) / np.sqrt(right.shape[1]))
    components = np.array(signed[:n_components])
    return components, _Projections(components)


def _spread(components: NDArray) -> NDArray:
    """Atoms of signed components, with a part of their mass spread over all entries."""
    signed = split_signed(components)
    totals = signed.sum(axis=(0, 2), keepdims=True)
    uniform = 1 / (2 * components.shape[1])
    share = np.where(totals > 0, signed / np.where(totals > 0, totals, 1), uniform)
    return (1 - _SPREAD) * share + _SPREAD * uniform
