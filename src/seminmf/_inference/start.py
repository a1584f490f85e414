"""Start values: "random", "kmeans", "svd" and "prior"."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._sources import Source, row_ranges
from .atoms import normalise, split_signed
from .em import State
from .problem import Problem, shares
from .summary import Summary

METHODS = ("random", "kmeans", "svd", "prior")

# K-means and SVD look at this many samples at the most.
_MOST_ROWS = 10_000
# Share of an atom that is spread over all entries of both signs: EM cannot leave a zero.
_SPREAD = 0.2


class Filled(NamedTuple):
    """Blocks of a source in the problem's unit, with gaps filled by the features' means."""

    source: Source
    means: NDArray
    unit: float

    @classmethod
    def from_summary(cls, source: Source, summary: Summary, unit: float) -> Filled:
        """With the means that a summary tells."""
        return cls(source, summary.column_sum / np.maximum(summary.column_count, 1) / unit, unit)

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop`, without gaps."""
        block = self.source.rows(start, stop) / self.unit
        return np.where(np.isnan(block), self.means, block)

    def sample(self, n_samples: int, random: RandomState) -> NDArray:
        """At most `n_samples` samples, drawn without replacement."""
        total = self.source.shape[0]
        if total <= n_samples:
            return self.rows(0, total)
        chosen = np.sort(random.choice(total, n_samples, replace=False))
        return np.concatenate([self.rows(j, j + 1) for j in chosen])


def start(problem: Problem, summary: Summary, method: str, random: RandomState) -> State:
    """Activations and atoms to start from, in the type of the data."""
    if method == "prior":
        activations, atoms = _from_prior(problem, random)
    elif method == "random":
        n_components, n_features = problem.n_components, problem.source.shape[1]
        atoms = normalise(random.uniform(size=(2, n_components, n_features)))
        activations = np.tile(_positive_shares(problem, summary), (1, n_components))
    else:
        filled = Filled.from_summary(problem.source, summary, problem.likelihood.unit)
        build = from_kmeans if method == "kmeans" else from_svd
        components, activations = build(filled, problem.n_components, random)
        activations = activations + _SPREAD * _positive_shares(problem, summary)
        atoms = _spread(components)
    if method != "prior":
        # Where X is nothing against the prior, EM would have to start from 0.
        shape, rate, _ = problem.prior
        activations = activations + np.maximum(shape - 1, 0) / problem.mass / (1 + rate)
    dtype = problem.source.dtype
    return State(activations.astype(dtype, order="C"), atoms.astype(dtype, order="C"))


def _positive_shares(problem: Problem, summary: Summary) -> NDArray:
    """Shares (J, 1) of the samples' Σ|x|, above 0: EM cannot leave a zero."""
    share = shares(problem, summary)[:, None]
    mean = share.mean()
    return np.maximum(share, 1e-3 * mean if mean > 0 else 1.0)


def _from_prior(problem: Problem, random: RandomState) -> tuple[NDArray, NDArray]:
    """Prior means, as in the paper's first experiment: α / Σα and α / (1 + β)."""
    n_samples, n_features = problem.source.shape
    n_components = problem.n_components
    shape, rate, atom_shape = problem.prior
    activations = np.broadcast_to(shape / (1 + rate) / problem.mass, (n_samples, n_components))
    atoms = normalise(np.broadcast_to(atom_shape, (2, n_components, n_features)))
    if np.all(atoms == atoms[:, :1]) and n_components > 1:
        # Equal components would stay equal for ever.
        atoms = normalise(atoms * random.uniform(0.9, 1.1, size=atoms.shape))
    return activations, atoms


def from_kmeans(filled: Filled, n_components: int, random: RandomState) -> tuple[NDArray, NDArray]:
    """Cluster centres, and each sample active in the component of its cluster."""
    from sklearn.cluster import KMeans

    sample = filled.sample(_MOST_ROWS, random)
    n_clusters = min(n_components, len(np.unique(sample, axis=0)))
    means = KMeans(n_clusters, n_init=1, random_state=random).fit(sample)
    centres = means.cluster_centers_.astype(np.float64)
    labels = np.concatenate(
        [
            means.predict(filled.rows(*rows).astype(sample.dtype))
            for rows in row_ranges(filled.source)
        ]
    )
    # Fewer distinct samples than components: the rest start near the centres there are.
    extra = centres[random.randint(n_clusters, size=n_components - n_clusters)]
    components = np.concatenate([centres, extra * random.uniform(0.5, 1.5, size=extra.shape)])
    activations = np.zeros((len(labels), n_components))
    activations[np.arange(len(labels)), labels] = np.abs(components).sum(axis=1)[labels]
    return components, activations


def from_svd(filled: Filled, n_components: int, random: RandomState) -> tuple[NDArray, NDArray]:
    """Singular vectors, each after the first with both signs, and the positive projections.

    Activations cannot be negative, so a direction that samples take both ways needs two components.
    """
    from sklearn.utils.extmath import randomized_svd

    sample = filled.sample(_MOST_ROWS, random)
    rank = min(n_components // 2 + 1, *sample.shape)
    left, _, right = randomized_svd(sample, n_components=rank, random_state=random)
    right = right * np.where(left.sum(axis=0) < 0, -1, 1)[:, None]
    signed = [right[0]]
    for vector in right[1:]:
        signed += [vector, -vector]
    while len(signed) < n_components:
        signed.append(random.normal(size=right.shape[1]) / np.sqrt(right.shape[1]))
    components = np.array(signed[:n_components])
    activations = np.concatenate(
        [np.maximum(filled.rows(*rows) @ components.T, 0) for rows in row_ranges(filled.source)]
    )
    # A component of unit length becomes an atom of unit sum.
    return components, activations * np.abs(components).sum(axis=1)


def _spread(components: NDArray) -> NDArray:
    """Atoms of signed components, with a part of their mass spread over all entries."""
    signed = split_signed(components)
    totals = signed.sum(axis=(0, 2), keepdims=True)
    uniform = 1 / (2 * components.shape[1])
    share = np.where(totals > 0, signed / np.where(totals > 0, totals, 1), uniform)
    return (1 - _SPREAD) * share + _SPREAD * uniform
