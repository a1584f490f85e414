"""Record what some eighty fits return, and compare it to the last bit with an earlier record.

A change that is to leave all results as they are is checked with

    python tools/record_fits.py before.npz        # before the change
    python tools/record_fits.py after.npz --compare before.npz

on the same machine: another processor may round differently. Only public names are used, so that
the script runs on both sides of a change.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from seminmf import (
    BayesianSkellamSNMF,
    EuclideanSNMF,
    PriorLearner,
    SkellamSNMF,
    sample_skellam_snmf,
    select_n_components,
)

SIZES = (240, 12, 3)
WIDE = (150, 37, 4)
LARGE = (6000, 60, 6)
FACTORS = (
    "atoms_",
    "components_",
    "activations_",
    "atom_shape_",
    "activation_shape_",
    "activation_rate_",
    "objectives_",
    "lower_bounds_",
    "dispersion_",
    "stability_",
)

Record = dict[str, NDArray]


def integers(shape: tuple[int, int, int], seed: int = 0) -> NDArray:
    """Counts of the model."""
    return sample_skellam_snmf(*shape, random_state=seed)[0].astype(np.float64)


def reals(shape: tuple[int, int, int], seed: int = 0) -> NDArray:
    """Real data with a signal and noise."""
    random = np.random.RandomState(seed)
    activations = random.gamma(0.7, size=(shape[0], shape[2]))
    components = random.normal(size=(shape[2], shape[1]))
    return activations @ components + 0.3 * random.normal(size=shape[:2])


def with_gaps(X: NDArray, share: float = 0.2) -> NDArray:
    """X with some cells missing."""
    return np.where(np.random.RandomState(7).uniform(size=X.shape) < share, np.nan, X)


def as_sparse(X: NDArray) -> Any:
    """X with what is missing not stored."""
    stored = np.nonzero(~np.isnan(X))
    return sparse.csr_array((X[stored], stored), shape=X.shape)


def as_chunks(X: NDArray) -> Any:
    """X as a Dask array."""
    import dask.array as da

    return da.from_array(X, chunks=(90, -1))


class OnDisk:
    """Anything that is sliced like an array, and is read in blocks."""

    def __init__(self, X: NDArray) -> None:
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, key: Any) -> NDArray:
        return self._X[key]


KINDS: dict[str, Callable[[NDArray], Any]] = {
    "dense": lambda X: X,
    "gaps": with_gaps,
    "sparse": lambda X: as_sparse(with_gaps(X, 0.4)),
    "disk": lambda X: OnDisk(with_gaps(X)),
    "dask": lambda X: as_chunks(with_gaps(X)),
}
DATA = {"real": reals, "integer": integers}
# Without a search for it.
DISPERSION = {"real": 0.0, "integer": 1.0}


def all_fits() -> Iterator[tuple[str, Callable[[], Any], Any, dict[str, Any]]]:
    """Name, estimator, data and arguments of each fit."""
    yield from _by_kind()
    yield from _by_options()
    yield from _by_size()


def _by_kind() -> Iterator[tuple]:
    """Estimators × solvers × likelihoods × kinds of data."""
    for likelihood, kind in product(DATA, KINDS):
        X = KINDS[kind](DATA[likelihood](SIZES))
        common = {"likelihood": likelihood, "random_state": 1, "max_iter": 60}
        for solver, acceleration in (("newton", "squarem"), ("em", "squarem"), ("em", None)):
            name = f"{likelihood} {kind} {solver} {acceleration}"
            options = {"solver": solver, "acceleration": acceleration}
            model = SkellamSNMF(3, dispersion=DISPERSION[likelihood], **options, **common)
            yield name, model, X, {}
        yield f"{likelihood} {kind} VB", BayesianSkellamSNMF(3, **common), X, {}
    for kind, solver in product(("dense", "gaps", "disk"), ("hals", "multiplicative")):
        X = KINDS[kind](reals(SIZES))
        model = EuclideanSNMF(3, solver=solver, random_state=1, max_iter=60)
        yield f"Euclidean {kind} {solver}", model, X, {}


def _by_options() -> Iterator[tuple]:
    """float32, weights, frozen atoms, priors, starts, accelerations and batches."""
    X = with_gaps(reals(SIZES))
    weights = np.random.RandomState(2).uniform(0, 2, len(X))
    atoms = np.full((2, 3, 12), np.nan)
    atoms[:, 1] = np.random.RandomState(3).uniform(size=(2, 12)) / 12
    priors = {
        "curved": (2.5, 0.7, 1.8),
        "peaked": (0.4, 0.2, 0.6),
        "own": (np.random.RandomState(4).uniform(1, 3, (len(X), 3)), 0.5, 1.0),
    }
    for likelihood, kind in product(DATA, (SkellamSNMF, BayesianSkellamSNMF)):
        Y = with_gaps(DATA[likelihood](SIZES))
        name = f"{likelihood} {kind.__name__}"
        common = {"likelihood": likelihood, "random_state": 1, "max_iter": 60}
        yield f"{name} float32", kind(3, **common), Y.astype(np.float32), {}
        yield f"{name} weights", kind(3, **common), Y, {"sample_weight": weights}
        start = "atoms" if kind is SkellamSNMF else "atom_shape"
        given = {start: atoms if kind is SkellamSNMF else 100 * atoms, "frozen": [1]}
        yield f"{name} frozen", kind(3, **common), Y, given
        yield f"{name} n_init", kind(3, n_init=3, **common), Y, {}
        yield f"{name} batches", kind(3, batch_size=64, **{**common, "max_iter": 5}), Y, {}
        for prior, (shape, rate, atom_shape) in priors.items():
            own = {
                "activation_shape_prior": shape,
                "activation_rate_prior": rate,
                "atom_shape_prior": atom_shape,
            }
            yield f"{name} prior {prior}", kind(3, **own, **common), Y, {}
    for init in ("kmeans", "svd", "prior", "map"):
        yield f"VB {init}", BayesianSkellamSNMF(3, init=init, random_state=1, max_iter=40), X, {}
    for init in ("kmeans", "svd"):
        model = SkellamSNMF(
            3, dispersion=0.0, solver="em", acceleration="parabolic", init=init, random_state=1
        )
        yield f"EM parabolic {init}", model, X, {}
    weighted = {"sample_weight": weights}
    yield "Euclidean weights", EuclideanSNMF(3, init="svd", random_state=1), X, weighted
    own = {"activation_shape_prior": 2.0, "atom_shape_prior": 1.5}
    yield (
        "Dask priors",
        SkellamSNMF(3, dispersion=0.0, random_state=1, **own),
        as_chunks(X),
        weighted,
    )
    yield (
        "sparse zeros",
        SkellamSNMF(3, dispersion=0.0, sparse_zeros="observed", random_state=1),
        as_sparse(X),
        {},
    )


def _by_size() -> Iterator[tuple]:
    """More features than lanes, and several tasks."""
    for shape, likelihood in product((WIDE, LARGE), DATA):
        X = DATA[likelihood](shape)
        common = {"likelihood": likelihood, "random_state": 1, "max_iter": 15}
        name = f"{likelihood} {shape}"
        known = {"dispersion": DISPERSION[likelihood], **common}
        yield f"{name} newton", SkellamSNMF(shape[2], **known), X, {}
        yield f"{name} VB", BayesianSkellamSNMF(shape[2], **common), X, {}
        stored = as_sparse(with_gaps(X, 0.8))
        yield f"{name} sparse", SkellamSNMF(shape[2], solver="em", **known), stored, {}


def record_fit(name: str, model: Any, X: Any, arguments: dict[str, Any]) -> Record:
    """Factors, objectives and what is asked of the fitted model."""
    model.fit(X, **arguments)
    found = {
        f"{name} | {attribute}": np.asarray(getattr(model, attribute))
        for attribute in FACTORS
        if hasattr(model, attribute)
    }
    own_prior = np.ndim(getattr(model, "activation_shape_prior", 1.0)) == 2
    if not own_prior:
        found[f"{name} | transform"] = np.asarray(model.transform(X))
        found[f"{name} | score"] = np.asarray(model.score(X))
        found[f"{name} | impute"] = np.asarray(model.impute(X))
    return found


def record_streams() -> Record:
    """Batches, the learner's state after five matrices, the choice of K, and posteriors."""
    found: Record = {}
    for likelihood, kind in product(DATA, (SkellamSNMF, BayesianSkellamSNMF)):
        model = kind(3, likelihood=likelihood, random_state=1)
        for seed in range(14):
            model.partial_fit(DATA[likelihood]((60, 12, 3), seed))
        found[f"{likelihood} {kind.__name__} stream"] = model.components_
    for posterior in ("correlated", "mean-field"):
        estimator = BayesianSkellamSNMF(2, likelihood="integer", random_state=0)
        learner = PriorLearner(estimator, learning_rate="annealed", posterior=posterior)
        for seed in range(5):
            learner.partial_fit(integers((120, 5, 2), seed))
        name = f"learner {posterior}"
        prior = learner.estimator_
        found[f"{name} shape"] = np.asarray(prior.activation_shape_prior)
        found[f"{name} rate"] = np.asarray(prior.activation_rate_prior)
        found[f"{name} atoms"] = np.asarray(prior.atom_shape_prior)
        found[f"{name} last"] = learner.last_.components_
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "learner"
            learner.save(path)
            found[f"{name} file"] = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    collection = [integers((120, 5, 2), seed) for seed in range(4)]
    estimator = BayesianSkellamSNMF(2, likelihood="integer", random_state=0)
    learner = PriorLearner(estimator, max_iter=5).fit(collection)
    found["collection bounds"] = learner.lower_bounds_
    for criterion, likelihood in product(("elbo", "heldout", "relevance"), DATA):
        X = DATA[likelihood]((80, 10, 2))
        estimator = BayesianSkellamSNMF(likelihood=likelihood)
        options = {"criterion": criterion, "n_folds": 2, "random_state": 0}
        chosen = select_n_components(X, [1, 2, 3], estimator=estimator, **options)
        found[f"select {criterion} {likelihood}"] = chosen.table.to_numpy(dtype=np.float64)
    model = BayesianSkellamSNMF(3, random_state=1).fit(with_gaps(reals(SIZES)))
    filled = model.impute(with_gaps(reals(SIZES)), return_interval=True)
    found |= {f"posterior impute {n}": part for n, part in enumerate(filled)}
    found |= {f"posterior interval {n}": end for n, end in enumerate(model.interval().components)}
    found["posterior sample"] = model.sample(2, random_state=0)[0]
    found["sources"] = (
        SkellamSNMF(2, dispersion=0.0, random_state=1).fit(reals(SIZES)).sources(reals(SIZES))
    )
    return found


def record_all() -> Record:
    """All of it."""
    found: Record = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n_fits, fit in enumerate(all_fits(), 1):
            found |= record_fit(*fit)
            print(f"\r{n_fits} fits", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        found |= record_streams()
    return found


def compare(before: Any, after: Record) -> int:
    """Print what differs, and by how much; return how many arrays do."""
    names = sorted({*before, *after})
    n_different = 0
    for name in names:
        if name not in before or name not in after:
            print(f"{name}: only in one of the records")
            n_different += 1
            continue
        old, new = before[name], after[name]
        same = old.shape == new.shape and old.dtype == new.dtype
        if same and old.tobytes() == new.tobytes():
            continue
        n_different += 1
        if not same:
            print(f"{name}: {old.dtype}{old.shape} before, {new.dtype}{new.shape} after")
            continue
        gap = np.abs(old.astype(np.float64) - new.astype(np.float64))
        largest = np.nanmax(np.abs(old.astype(np.float64)), initial=0.0)
        print(f"{name}: differs by {np.nanmax(gap):.3g}, of {largest:.3g}")
    print(f"{len(names)} arrays, {n_different} differ")
    return n_different


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--compare", type=Path)
    arguments = parser.parse_args()
    found = record_all()
    np.savez(arguments.path, **found)
    if arguments.compare is None:
        print(f"{len(found)} arrays")
        return 0
    with np.load(arguments.compare) as before:
        return 1 if compare(before, found) else 0


if __name__ == "__main__":
    sys.exit(main())
