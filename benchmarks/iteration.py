"""Time of one iteration, against peers, in one run: `python benchmarks/iteration.py`.

Prints a Markdown table for each aim. Every time is the best of several, all on one thread unless
said otherwise, because machines are shared. Peers that are not installed are left out:
`pip install ".[bench]"` brings them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import wonterfact_peer
from problems import problem_of
from threadpoolctl import threadpool_limits

from seminmf._algorithms import em, vb
from seminmf._algorithms.problem import Problem
from seminmf._model.likelihoods import Integer, Real

REPEATS = 15
NANOSECONDS_PER_CELL = 1.5  # that the aim grants to the loop over cells


def best_time(function: Callable[[], object], repeats: int = REPEATS) -> float:
    """Least time of a call, in milliseconds, after one that does not count."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


class Case:
    """Data and a start of given sizes; `signed` or nonnegative, real or integer."""

    def __init__(self, sizes: tuple[int, int, int], likelihood: str, dtype: str = "float64"):
        self.n_features, self.n_samples, self.n_components = sizes
        random = np.random.default_rng(0)
        shape = (2, self.n_components, self.n_features)
        atoms = random.dirichlet(np.ones(2 * self.n_features), self.n_components)
        self.atoms = atoms.reshape(self.n_components, 2, -1).transpose(1, 0, 2).astype(dtype)
        assert self.atoms.shape == shape
        self.activations = random.gamma(
            1.0, 5.0 * self.n_features, (self.n_samples, self.n_components)
        ).astype(dtype)
        rates = self.activations @ self.atoms
        self.X = (random.poisson(rates[0]) - random.poisson(rates[1])).astype(dtype)
        if likelihood == "real":
            self.X += random.normal(size=self.X.shape).astype(dtype)
        self.likelihood = Integer() if likelihood == "integer" else Real()
        # Nobody iterates from the solution: start elsewhere.
        self.start = em.Factors(
            np.ascontiguousarray(self.activations[::-1]), np.ascontiguousarray(self.atoms[::-1])
        )

    def problem(self, n_jobs: int = 1) -> AbstractContextManager[Problem]:
        """The case as the algorithms see it."""
        return problem_of(self.X, self.n_components, self.likelihood, n_jobs=n_jobs)

    def em_time(self, n_jobs: int = 1) -> float:
        """One EM iteration, objective included."""
        with self.problem(n_jobs) as problem:
            return best_time(lambda: em.step(problem, self.start))

    def vb_time(self) -> float:
        """One VBEM iteration, bound included."""
        with self.problem() as problem:
            state = vb.state_from(problem, self.start)
            return best_time(lambda: vb.step(problem, state))

    def numpy_time(self) -> float:
        """The same iteration in plain NumPy, real likelihood, with the objective."""
        X, size = self.X, np.abs(self.X)
        positive, negative = np.maximum(X, 0), np.maximum(-X, 0)

        def iterate() -> None:
            A, atoms = self.start
            rate0, rate1 = A @ atoms[0], A @ atoms[1]
            root = np.sqrt(X * X + 4 * rate0 * rate1)
            u0 = positive / rate0 + 2 * rate1 / (size + root)
            u1 = negative / rate1 + 2 * rate0 / (size + root)
            np.sum(
                rate0
                + rate1
                - root
                + size * np.log((size + root) / 2)
                - positive * np.log(rate0)
                - negative * np.log(rate1)
            )
            A * (u0 @ atoms[0].T + u1 @ atoms[1].T)
            atoms * np.stack([A.T @ u0, A.T @ u1])

        return best_time(iterate, 5)

    def products_time(self) -> float:
        """The six matrix products alone, by BLAS, on whole matrices."""
        A, atoms = self.start
        rates = A @ atoms

        def multiply() -> None:
            for s in range(2):
                A @ atoms[s]
                rates[s] @ atoms[s].T
                A.T @ rates[s]

        return best_time(multiply)

    def bound(self) -> float:
        """12 I J K flops at the machine's peak, and 1.5 ns a cell: what the aim compares with."""
        cells = self.n_samples * self.n_features
        flops = 12 * cells * self.n_components
        return 1e3 * flops / peak(self.X.dtype) + 1e-6 * NANOSECONDS_PER_CELL * cells

    def sklearn_time(self) -> float:
        """scikit-learn's NMF with KL divergence, "mu", on |X|."""
        from sklearn.decomposition import NMF

        X = np.abs(self.X)
        H = np.ascontiguousarray(self.atoms[0])

        def run(n_iterations: int) -> float:
            model = NMF(
                self.n_components,
                init="custom",
                solver="mu",
                beta_loss="kullback-leibler",
                tol=0,
                max_iter=n_iterations,
            )
            start = time.perf_counter()
            model.fit_transform(X, W=self.activations.copy(), H=H.copy())
            return time.perf_counter() - start

        return _per_iteration(run)

    def wonterfact_time(self) -> float | None:
        """Wonterfact from PyPI, EM, objective left out, as its documented interface has it."""
        if not wonterfact_peer.installed():
            return None
        peer = wonterfact_peer.Peer(
            self.X,
            *self.start,
            real=isinstance(self.likelihood, Real),
            update_type="regular",
        )
        return _per_iteration(peer.iterate)


def _per_iteration(run: Callable[[int], float], few: int = 2, many: int = 7) -> float:
    """Milliseconds of one more iteration: the fixed cost of a call cancels."""
    run(few)
    return 1e3 * min((run(many) - run(few)) / (many - few) for _ in range(3))


_peaks: dict[str, float] = {}


def peak(dtype: np.dtype) -> float:
    """Flops a second of a large matrix product on one thread."""
    if dtype.name not in _peaks:
        n = 1500
        a = np.random.default_rng(0).random((n, n)).astype(dtype)
        _peaks[dtype.name] = 2 * n**3 / (1e-3 * best_time(lambda: a @ a, 8))
    return _peaks[dtype.name]


def row(*cells: object) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def ratio(peer: float | None, own: float, aim: str) -> tuple[str, str, str]:
    """Time of a peer, its ratio to ours, and the aim."""
    if peer is None:
        return "not installed", "–", aim
    return f"{peer:.2f}", f"{peer / own:.2f}", aim


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    large, small, counts = (200, 20000, 10), (9, 14500, 7), (100, 3000, 10)
    with threadpool_limits(1):
        first, second, third = Case(large, "real"), Case(small, "real"), Case(counts, "integer")
        own, own_small, own_counts = first.em_time(), second.em_time(), third.em_time()
        print(f"Matrix-product peak, one thread: {peak(first.X.dtype) / 1e9:.0f} Gflop/s\n")
        row("one iteration, ms", "seminmf", "other", "ratio", "aim")
        row(*["---"] * 5)
        for name, case, time_, aims in (
            (f"{large} real", first, own, ("≥ 10", "≥ 4")),
            (f"{small} real", second, own_small, ("≥ 8", "≥ 5")),
            (f"{counts} integer", third, own_counts, ("≥ 20", "–")),
        ):
            row(
                f"{name}, Wonterfact",
                f"{time_:.2f}",
                *ratio(case.wonterfact_time(), time_, aims[0]),
            )
            row(
                f"{name}, scikit-learn NMF",
                f"{time_:.2f}",
                *ratio(case.sklearn_time(), time_, aims[1]),
            )
        row(f"{large} real, plain NumPy", f"{own:.2f}", *ratio(first.numpy_time(), own, "–"))
        row(f"{large} real, products alone", f"{own:.2f}", *ratio(first.products_time(), own, "–"))
        limit = first.bound()
        row(
            f"{large} real, flops at peak + 1.5 ns a cell",
            f"{own:.2f}",
            f"{limit:.2f}",
            f"seminmf / other {own / limit:.2f}",
            "≤ 1.2",
        )
        single = Case(large, "real", "float32")
        row(
            f"{large} real, float32",
            f"{own:.2f}",
            *ratio(single.em_time(), own, "")[:1],
            f"{own / single.em_time():.2f}",
            "≥ 1.6",
        )
        bayes = first.vb_time()
        row(f"{large} real, VBEM", f"{own:.2f}", f"{bayes:.2f}", f"{bayes / own:.2f}", "≤ 1.3")
        both = first.em_time(n_jobs=2)
        row(f"{large} real, two threads", f"{own:.2f}", f"{both:.2f}", f"{own / both:.2f}", "≥ 1.7")


if __name__ == "__main__":
    main()
