"""Tensors: truth found again, and the time of an iteration, beside TensorLy and Wonterfact.

    python benchmarks/tensors.py recovery
    python benchmarks/tensors.py speed

Times are CPU time on one thread (set OPENBLAS_NUM_THREADS=1), from the difference of a short and a
long run. Peers that are not installed are left out. Wonterfact is called as its documentation says.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from seminmf import SkellamSNTF

RATIOS, GAPS, DRAWS = (1, 3, 10), (0.0, 0.2), 5
CP, TUCKER = "nr,jr,kr->njk", "na,abc,jb,kc->njk"


class Truth(NamedTuple):
    """Factors of a model, by the axes of the data, and the signal that they make."""

    factors: list[NDArray]
    signal: NDArray

    def observed(self, ratio: float, gaps: float, random: np.random.Generator) -> NDArray:
        """The signal with noise and gaps."""
        noise = self.signal.std() / ratio * random.normal(size=self.signal.shape)
        X = self.signal + noise
        X[random.random(X.shape) < gaps] = np.nan
        return X


def cp_truth(random: np.random.Generator) -> Truth:
    """60 × 50 × 40, 5 components, of which two are alike in their courses."""
    a, b = random.gamma(0.7, size=(60, 5)), random.normal(size=(50, 5))
    c = random.gamma(0.7, size=(40, 5))
    c[:, 1] = 0.7 * c[:, 0] + 0.3 * c[:, 1]
    return Truth([a, b, c], np.einsum("nr,jr,kr->njk", a, b, c))


def tucker_truth(random: np.random.Generator) -> Truth:
    """100 × 30 × 25 with a sparse core 4 × 3 × 2."""
    a, core = random.gamma(0.7, size=(100, 4)), random.gamma(0.3, size=(4, 3, 2))
    b, c = random.normal(size=(30, 3)), random.gamma(0.7, size=(25, 2))
    return Truth([a, b, c], np.einsum("na,abc,jb,kc->njk", a, core, b, c))


def cosines(truth: list[NDArray], found: list[NDArray], together: bool) -> NDArray:
    """Cosine of each column with its match: one matching for all factors, or one for each."""
    own = [np.abs(_unit(t).T @ _unit(f)) for t, f in zip(truth, found, strict=True)]
    matched = []
    for one in own:
        rows, columns = linear_sum_assignment(-(np.prod(own, axis=0) if together else one))
        matched.append(one[rows, columns])
    return np.concatenate(matched)


def _unit(factor: NDArray) -> NDArray:
    """Columns of length 1."""
    return factor / np.maximum(np.linalg.norm(factor, axis=0), 1e-300)


# --- ways to find factors: each takes X and a seed ------------------------------------------------


def ours(model: str, n_components: Any, X: NDArray, seed: int) -> list[NDArray]:
    """SkellamSNTF with nothing told but the model and which factor has signs."""
    signed = "jr" if model == CP else "jb"
    fit = SkellamSNTF(model, n_components, signed=signed, random_state=seed, n_jobs=1).fit(X)
    return [fit.factors_[name] for name in model.partition("->")[0].split(",") if name != "abc"]


def tensorly_cp(X: NDArray, seed: int) -> list[NDArray]:
    """Alternating least squares, with a mask if there are gaps."""
    from tensorly.decomposition import parafac

    seen = ~np.isnan(X)
    mask = None if seen.all() else seen
    options = {"init": "random", "n_iter_max": 1000, "tol": 1e-8, "random_state": seed}
    return parafac(np.where(seen, X, 0), 5, mask=mask, **options).factors


def tensorly_hals(X: NDArray, seed: int) -> list[NDArray]:
    """HALS with two modes ≥ 0; it takes no mask, so gaps are 0. Random starts made it fail."""
    from tensorly.decomposition import non_negative_parafac_hals

    del seed
    filled = np.where(np.isnan(X), 0, X)
    options = {"init": "svd", "n_iter_max": 1000, "tol": 1e-8}
    return non_negative_parafac_hals(filled, 5, nn_modes={0, 2}, **options).factors


def tensorly_tucker(X: NDArray, seed: int) -> list[NDArray]:
    """Tucker by orthogonal iteration, with a mask if there are gaps."""
    from tensorly.decomposition import tucker

    seen = ~np.isnan(X)
    mask = None if seen.all() else seen
    _, factors = tucker(np.where(seen, X, 0), (4, 3, 2), mask=mask, random_state=seed)
    return factors


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def recovery() -> None:
    """Print cosines with the truth: mean and least over all columns, as medians of the draws."""
    peers = _has("tensorly")
    kinds: dict[str, tuple[Callable, dict[str, Callable], bool]] = {
        "CP": (cp_truth, {"SkellamSNTF": partial(ours, CP, 5)}, True),
        "Tucker": (
            tucker_truth,
            {"SkellamSNTF": partial(ours, TUCKER, {"a": 4, "b": 3, "c": 2})},
            False,
        ),
    }
    if peers:
        kinds["CP"][1].update({"TensorLy CP": tensorly_cp, "TensorLy HALS": tensorly_hals})
        kinds["Tucker"][1]["TensorLy Tucker"] = tensorly_tucker
    print("| model | signal / noise | gaps | way | mean cosine | least cosine | s |")
    print("|---|---|---|---|---|---|---|")
    for kind, (draw, ways, together) in kinds.items():
        for ratio in RATIOS:
            for gaps in GAPS:
                for way, find in ways.items():
                    row = _median(draw, find, ratio, gaps, together)
                    print(f"| {kind} | {ratio} | {gaps:.0%} | {way} | {row} |", flush=True)


def _median(draw: Callable, find: Callable, ratio: float, gaps: float, together: bool) -> str:
    means, least, seconds = [], [], []
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        truth = draw(random)
        X = truth.observed(ratio, gaps, random)
        start = time.process_time()
        try:
            found = cosines(truth.factors, find(X, seed), together)
        except np.linalg.LinAlgError:
            found = np.zeros(1)  # it failed
        seconds.append(time.process_time() - start)
        means.append(found.mean())
        least.append(found.min())
    return f"{np.median(means):.3f} | {np.median(least):.3f} | {np.median(seconds):.2f}"


# --- the time of an iteration -------------------------------------------------------------------


def speed(sizes: tuple[int, int, int] = (200, 60, 50), n_components: int = 8) -> None:
    """Print CPU ms of an iteration of CP."""
    random = np.random.default_rng(0)
    a, c = (random.gamma(0.7, size=(size, n_components)) for size in (sizes[0], sizes[2]))
    b = random.normal(size=(sizes[1], n_components))
    X = np.einsum("nr,jr,kr->njk", a, b, c) + random.normal(size=sizes)
    print("| way | ms an iteration |")
    print("|---|---|")
    for name, run in _timed(X, n_components):
        print(f"| {name} | {1e3 * _per_iteration(run):.1f} |", flush=True)


def _timed(X: NDArray, n_components: int) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Ways, as functions of the number of iterations."""
    for likelihood in ("real", "integer"):
        for dtype in (np.float64, np.float32):
            data = (X.round() if likelihood == "integer" else X).astype(dtype)
            run = partial(_fit, data, n_components, likelihood)
            yield f"SkellamSNTF, {likelihood}, {np.dtype(dtype).name}", run
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    yield "SkellamSNTF, real, 20 % gaps", partial(_fit, gaps, n_components, "real")
    if _has("tensorly"):
        yield from _timed_tensorly(X, n_components)
    if _has("wonterfact"):
        for name, real in (("real", True), ("integer", False)):
            yield f"Wonterfact, {name}", _wonterfact(X, n_components, real=real)


def _fit(X: NDArray, n_components: int, likelihood: str, n_iterations: int) -> None:
    options = {
        "likelihood": likelihood,
        "solver": "em",
        "acceleration": None,
        "tol": 0,
        "n_jobs": 1,
    }
    if likelihood == "real":
        options["dispersion"] = 0.0
    model = SkellamSNTF(CP, n_components, signed="jr", random_state=0, **options)
    model.set_params(max_iter=n_iterations).fit(X)


def _timed_tensorly(X: NDArray, n_components: int) -> Iterator[tuple[str, Callable]]:
    from tensorly.decomposition import non_negative_parafac, non_negative_parafac_hals, parafac

    mask = np.random.default_rng(1).random(X.shape) >= 0.2
    options = {"init": "random", "random_state": 0, "tol": 0}

    def run(method: Callable, n_iterations: int, **own: Any) -> None:
        method(np.abs(X), n_components, n_iter_max=n_iterations, **options, **own)

    yield "TensorLy CP", partial(run, parafac)
    yield "TensorLy CP, mask", partial(run, parafac, mask=mask)
    yield "TensorLy nonnegative CP", partial(run, non_negative_parafac)
    yield "TensorLy nonnegative CP, mask", partial(run, non_negative_parafac, mask=mask)
    yield "TensorLy HALS, two modes ≥ 0", partial(run, non_negative_parafac_hals, nn_modes={0, 2})


def _wonterfact(X: NDArray, n_components: int, *, real: bool) -> Callable[[int], Any]:
    """Wonterfact's EM for the same model: its graph, built once."""
    import wonterfact as wtf

    random = np.random.default_rng(0)
    n, j, k = X.shape
    activations = wtf.LeafGamma(
        index_id="nr",
        tensor=random.gamma(1, size=(n, n_components)),
        prior_shape=1,
        prior_rate=1e-3,
    )
    courses = wtf.LeafDirichlet(
        index_id="rk", norm_axis=(1,), tensor=_rows(random, (n_components, k)), prior_shape=1
    )
    maps = wtf.LeafDirichlet(
        index_id="rjs", norm_axis=(1, 2), tensor=_rows(random, (n_components, j, 2)), prior_shape=1
    )
    first, second = wtf.Multiplier(index_id="nkr"), wtf.Multiplier(index_id="nkjs")
    first.new_parents(activations, courses)
    second.new_parents(first, maps)
    data = np.ascontiguousarray((X if real else X.round()).transpose(0, 2, 1))
    observer = wtf.RealObserver(index_id="nkj", tensor=data, limit_skellam_update=real)
    second.new_child(observer)
    root = wtf.Root(verbose_iter=10**6, cost_computation_iter=10**6, stop_estim_threshold=0, seed=0)
    root.update_type = "regular"
    observer.new_child(root)
    return lambda n_iterations: root.estimate_param(n_iter=n_iterations)


def _rows(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray:
    """Random arrays that sum to 1 along all but the first axis."""
    array = random.uniform(size=shape)
    return array / array.sum(axis=tuple(range(1, len(shape))), keepdims=True)


def _per_iteration(run: Callable[[int], Any], few: int = 5, many: int = 35) -> float:
    """CPU seconds of an iteration: the least of three differences of a long and a short run."""
    run(few)
    found = []
    for _ in range(3):
        times = []
        for n in (few, many):
            start = time.process_time()
            run(n)
            times.append(time.process_time() - start)
        found.append((times[1] - times[0]) / (many - few))
    return min(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("recovery", "speed"))
    warnings.simplefilter("ignore")
    {"recovery": recovery, "speed": speed}[parser.parse_args().what]()
