"""Which method? Semi-NMF beside other factorizations and k-means, on the same data, by task.

Run it with ``python benchmarks/methods.py``, or one part with ``--only truth``, ``gaps``,
``clusters`` or ``reconstruction``; all take about ten minutes of one core. Each part prints a
Markdown table, which docs/which_method.md has.

- *truth*: simulated matrices of ``simulated.py``; the mean cosine of true and found components.
- *gaps*: real tables, a share of the cells hidden; root mean square errors over those of column
  means. at most 300 rows. Each method has chosen its settings by a tenth of the cells that it saw.
- *clusters*: real tables with classes, as many components as classes; the adjusted Rand index.
  A sample's cluster is its largest activation (the largest in absolute value, if they have signs).
- *reconstruction*: the same tables; R² around the means, with the same number of components.

Real tables are standardised, and have at most ``--most-rows`` rows. ``recovery_peers.py`` has the
methods: *semi-NMF* is ``SkellamSNMF`` as it is by default, *squares* ``EuclideanSNMF``; the others
are scikit-learn's, *NMF* on X less its minimum, *FA* factor analysis, *dict.* dictionary learning
with a positive code and alpha 1; *soft SVD* is that of ``seminmf.experiments``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import recovery_peers
from joblib import Parallel, delayed
from numpy.random import RandomState
from numpy.typing import NDArray
from real_tables import standardised, varies
from recovery_scores import Factors, score
from simulated import KINDS
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import FactorAnalysis
from sklearn.metrics import adjusted_rand_score
from tables import row, table_head

from seminmf import SkellamSNMF
from seminmf._selection.heldout import hide
from seminmf.datasets import load_ionosphere, load_segment, load_shuttle, make_waveform
from seminmf.experiments import _imputers as imputers
from seminmf.experiments._hidden import quiet_and_alone

Fit = Callable[[NDArray, int, int, bool], Factors | None]


class Peer(NamedTuple):
    """How factors are found, and what they are.

    Attributes
    ----------
    fit : callable
        Takes X, the number of components, a seed, and whether components are ≥ 0.
    signed : bool
        Whether activations have signs, and so components may be turned round.
    offset : callable
        What the product of the factors is added to.
    """

    fit: Fit
    signed: bool = False
    offset: Callable[[NDArray], NDArray | float] = lambda X: 0.0


def mean_of(X: NDArray) -> NDArray:
    """Of each feature."""
    return X.mean(axis=0)


def factor_analysis(X: NDArray, K: int, seed: int, positive: bool) -> Factors | None:
    """`FactorAnalysis`, turned by varimax."""
    if np.isnan(X).any():
        return None
    model = FactorAnalysis(K, rotation="varimax" if K > 1 else None, random_state=seed)
    return Factors(model.fit_transform(X), model.components_)


def k_means(X: NDArray, K: int, seed: int, positive: bool) -> Factors | None:
    """`KMeans`: components are centres, and one activation of a sample is 1."""
    if np.isnan(X).any():
        return None
    model = KMeans(K, n_init=10, random_state=seed).fit(X)
    return Factors(np.eye(K)[model.labels_], model.cluster_centers_)


def soft_svd(X: NDArray, K: int, seed: int, positive: bool) -> Factors | None:
    """All singular values less the first that is left out, so that K are above 0."""
    if np.isnan(X).any():
        return None
    left, sizes, right = np.linalg.svd(X, full_matrices=False)
    threshold = sizes[K] if K < len(sizes) else 0.0
    return Factors(left[:, :K] * (sizes[:K] - threshold), right[:K])


def minimum(X: NDArray) -> float:
    """Of all cells."""
    return float(X.min())


PEERS: dict[str, Peer] = {
    "semi-NMF": Peer(recovery_peers.skellam),
    "squares": Peer(recovery_peers.euclidean),
    "PCA": Peer(recovery_peers.pca, signed=True, offset=mean_of),
    "FA": Peer(factor_analysis, signed=True, offset=mean_of),
    "ICA": Peer(recovery_peers.ica, signed=True),
    "NMF": Peer(recovery_peers.nmf, offset=minimum),
    "dict.": Peer(recovery_peers.dictionary_alpha_1),
    "k-means": Peer(k_means),
    "soft SVD": Peer(soft_svd, signed=True),
}
KINDS_SHOWN = ("plain", "gamma-5", "one-each", "positive-W", "noise-by-feature", "gaps-20")


class Labelled(NamedTuple):
    """A table and its classes."""

    X: NDArray
    classes: NDArray

    @property
    def n_classes(self) -> int:
        """How many there are."""
        return len(np.unique(self.classes))


LABELLED: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "digits": load_digits,
    "ionosphere": load_ionosphere,
    "segment": load_segment,
    "shuttle": load_shuttle,
    "waveform": lambda return_X_y: make_waveform(1000, random_state=0),
}


def load(name: str, most_rows: int) -> Labelled:
    """Some rows, standardised, without features that hardly vary."""
    X, classes = LABELLED[name](return_X_y=True)
    rows = np.sort(RandomState(0).permutation(len(X))[:most_rows])
    X = np.asarray(X, dtype=float)[rows]
    kept = [varies(column) for column in X.T]
    return Labelled(standardised(X[:, kept]), np.unique(classes[rows], return_inverse=True)[1])


def timed(fit: Fit, *arguments: Any) -> tuple[Factors | None, float]:
    """What is found, and the seconds that it took."""
    with quiet_and_alone():
        begin = time.perf_counter()
        return fit(*arguments), time.perf_counter() - begin


def in_parallel(function: Callable, tasks: list[tuple], options: argparse.Namespace) -> list:
    """Results in the order of the tasks."""
    return Parallel(n_jobs=options.jobs)(delayed(function)(*task) for task in tasks)


# --- truth --------------------------------------------------------------------------------------


def truth(options: argparse.Namespace) -> Iterator[str]:
    """Mean cosines, and the median of the seconds."""
    yield f"\nSignal / noise {options.snr:g}, mean of {options.draws} draws: mean cosine\n"
    names = list(PEERS)
    yield from table_head(["", *names])
    tasks = [(kind, number, options) for kind in KINDS_SHOWN for number in range(options.draws)]
    found = np.array(in_parallel(cosines, tasks, options), dtype=float)
    found = found.reshape(len(KINDS_SHOWN), options.draws, len(names), 2)
    for kind, draws in zip(KINDS_SHOWN, found, strict=True):
        yield row([kind, *map(number, draws[:, :, 0].mean(axis=0))])
    seconds = np.nanmedian(found[..., 1], axis=(0, 1))
    yield row(["seconds", *(f"{value:.2f}" for value in seconds)])


def cosines(kind: str, draw_number: int, options: argparse.Namespace) -> list[tuple[float, float]]:
    """Of all methods on a draw, and seconds."""
    draw = KINDS[kind].draw(options.snr, [options.seed, draw_number])
    K = len(draw.truth.components)
    values = []
    for peer in PEERS.values():
        found, seconds = timed(peer.fit, draw.X, K, options.seed, KINDS[kind].positive)
        if found is None:
            values.append((np.nan, np.nan))
            continue
        found = found.with_features_over(draw.units)
        values.append((score(found, draw.truth, flip=peer.signed).cosine, seconds))
    return values


def number(value: float) -> str:
    """With three digits, or a dash."""
    return "–" if np.isnan(value) else f"{value:.3f}"


# --- gaps ---------------------------------------------------------------------------------------


def fillers(n_features: int) -> dict[str, imputers.Method]:
    """Methods that fill gaps, and the settings that they choose from."""
    numbers = [n for n in (2, 4, 8) if n < n_features]
    ours = partial(imputers.fill_by_factorization, fit_intercept=True)
    return {
        "column means": imputers.Method(
            partial(imputers.fill_with_means, means=imputers.column_means)
        ),
        "semi-NMF": imputers.Method(
            partial(ours, estimator=SkellamSNMF), {"n_components": numbers}
        ),
        "soft SVD": imputers.Method(
            imputers.fill_by_soft_svd, {"threshold": tuple(np.geomspace(0.5, 0.01, 10))}
        ),
        "KNNImputer": imputers.Method(imputers.fill_by_neighbours, {"n_neighbors": (2, 5, 10, 20)}),
        "IterativeImputer": imputers.Method(
            imputers.fill_by_regression,
            {"n_nearest_features": tuple({min(5, n_features - 1), n_features - 1})},
        ),
    }


def gaps(options: argparse.Namespace) -> Iterator[str]:
    """Errors over those of column means; then the seconds."""
    names = list(fillers(20))
    for share in (0.2, 0.5):
        yield f"\n{share:.0%} hidden: error over that of column means\n"
        yield from table_head(["", *names[1:]])
        tasks = [(name, share, options) for name in LABELLED]
        found = np.array(in_parallel(hidden_errors, tasks, options))
        for name, values in zip(LABELLED, found, strict=True):
            yield row([name, *map(number, values[1:, 0] / values[0, 0])])
        yield row(["median", *map(number, np.median(found[:, 1:, 0] / found[:, :1, 0], axis=0))])
        yield row(["seconds", *(f"{x:.1f}" for x in np.median(found[:, 1:, 1], axis=0))])


def hidden_errors(name: str, share: float, options: argparse.Namespace) -> list[list[float]]:
    """Error and seconds of each method, with the choice of its settings."""
    X = load(name, min(options.most_rows, 300)).X
    hidden = hide(np.ones(X.shape, dtype=bool), share, RandomState(options.seed))
    gappy = np.where(hidden, np.nan, X)
    values = []
    for method in fillers(X.shape[1]).values():
        with quiet_and_alone():
            begin = time.perf_counter()
            chosen = method.choose(gappy, options.seed)
            filled = method.fill(gappy, seed=options.seed, intervals=False, **chosen).values
            seconds = time.perf_counter() - begin
        values.append([imputers.root_mean_square((filled - X)[hidden]), seconds])
    return values


# --- clusters and reconstruction ----------------------------------------------------------------


def clusters(options: argparse.Namespace) -> Iterator[str]:
    """Adjusted Rand indices."""
    names = [name for name in PEERS if name != "soft SVD"]
    yield f"\nAdjusted Rand index, mean of {options.draws} seeds\n"
    yield from by_table(rand_indices, names, options)


def rand_indices(table: Labelled, found: Factors, peer: Peer) -> float:
    """Of the largest activations."""
    sizes = (
        np.linalg.norm(found.components, axis=1)
        if peer.signed
        else np.abs(found.components).sum(axis=1)
    )
    labels = np.abs(found.activations * sizes).argmax(axis=1)
    return adjusted_rand_score(table.classes, labels)


def reconstruction(options: argparse.Namespace) -> Iterator[str]:
    """R² around the means."""
    yield f"\nR² with as many components as classes, mean of {options.draws} seeds\n"
    yield from by_table(explained, list(PEERS), options)


def explained(table: Labelled, found: Factors, peer: Peer) -> float:
    """R², with the best activations for components that may be present in negative amounts."""
    X, offset = table.X, peer.offset(table.X)
    if peer.signed and peer is not PEERS["soft SVD"]:
        centred = X - X.mean(axis=0)
        fitted = X.mean(axis=0) + centred @ np.linalg.pinv(found.components) @ found.components
    else:
        fitted = found.product() + offset
    return float(1 - np.sum((X - fitted) ** 2) / np.sum((X - X.mean(axis=0)) ** 2))


def by_table(measure: Callable, names: list[str], options: argparse.Namespace) -> Iterator[str]:
    """A row for each table, means over seeds; then medians of the seconds."""
    yield from table_head(["", "K", *names])
    tasks = [(measure, names, table, options) for table in LABELLED]
    found = in_parallel(measured, tasks, options)
    for name, (K, values) in zip(LABELLED, found, strict=True):
        yield row([name, K, *(f"{value:.2f}" for value in values[:, 0])])
    each = np.array([values for _, values in found])
    yield row(["mean", "", *(f"{value:.2f}" for value in each[:, :, 0].mean(axis=0))])
    yield row(["seconds", "", *(f"{x:.2f}" for x in np.median(each[:, :, 1], axis=0))])


def measured(
    measure: Callable, names: list[str], table_name: str, options: argparse.Namespace
) -> tuple[int, NDArray]:
    """The number of classes; the measure and the seconds of each method."""
    table = load(table_name, options.most_rows)
    values = []
    for name in names:
        peer = PEERS[name]
        runs = []
        for seed in range(options.draws):
            found, seconds = timed(peer.fit, table.X, table.n_classes, seed, False)
            runs.append((measure(table, found, peer), seconds))
        values.append(np.mean(runs, axis=0))
    return table.n_classes, np.array(values)


# --- the command --------------------------------------------------------------------------------

PARTS = {"truth": truth, "gaps": gaps, "clusters": clusters, "reconstruction": reconstruction}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=list(PARTS), nargs="+", default=list(PARTS))
    parser.add_argument("--draws", type=int, default=3, help="data sets or seeds")
    parser.add_argument("--snr", type=float, default=3.0, help="signal / noise of simulated data")
    parser.add_argument("--most-rows", type=int, default=1000, help="of a real table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    for part in options.only:
        for line in PARTS[part](options):
            print(line, flush=True)


if __name__ == "__main__":
    main()
