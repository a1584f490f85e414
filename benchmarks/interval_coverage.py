"""How often do intervals hold the truth?

Prints Markdown tables of the share of true values that lie in the 50, 90 and 99 % intervals of
`BayesianSkellamSNMF`, in per cent. Run it with ``python benchmarks/interval_coverage.py``.

- *Simulated data*, whose truth is known (`simulated.py`): activations gamma of shape 0.5,
  components normal, noise normal, Student's t with three degrees of freedom, or Skellam; signal /
  noise 1, 3 and 10; with and without 20 % of the cells hidden. "Means of cells" are activations ·
  components; "hidden cells" are observations that the fit did not see, whose intervals include the
  noise, and "large" is the tenth of them that is largest. Components are matched by cosines.
- *Integers*: Skellam numbers of the model itself, with components and activations from its prior.
- *Real tables*, 20 % of the cells hidden: whether hidden cells lie in their intervals.

``--by parametric`` and ``--by rows`` take `seminmf.bootstrap` of `SkellamSNMF` in the place of the
posterior; it has no intervals of hidden cells. ``--picture`` draws what part of the truth intervals
of all levels hold.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from real_tables import TABLES, load_table
from scipy.optimize import linear_sum_assignment
from simulated import PLAIN, gaussian, student
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, SkellamSNMF, bootstrap, sample_skellam_snmf
from seminmf.experiments._hidden import quiet_and_alone

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
SHOWN = (0.5, 0.9, 0.99)
QUANTITIES = ("activations", "components", "amounts", "means of cells", "hidden cells", "large")
NOISES = {"Gaussian": gaussian, "Student": student, "Skellam": None}
RATIOS = (1.0, 3.0, 10.0)
NUMBERS = (2, 3, 5)
BOOTSTRAPS = ("parametric", "rows")
HIDDEN = 0.2
AIM = (0.8, 0.97)


class Case(NamedTuple):
    """Data, and what is behind them.

    Attributes
    ----------
    name : str
    likelihood : str
    X : (J, I) array
        All cells.
    hidden : (J, I) boolean array
        Those that a fit does not see.
    activations, components : arrays or None
        Of a sum of 1 in absolute values; None for real tables.
    n_components : int
    """

    name: str
    likelihood: str
    X: NDArray
    hidden: NDArray
    activations: NDArray | None
    components: NDArray | None
    n_components: int


def simulated(noise: str, ratio: float, n_components: int, gaps: float, seed: int) -> Case:
    """Real data whose truth is known."""
    kind = PLAIN._replace(n_components=n_components, noise=NOISES[noise])
    draw = kind.draw(ratio, [seed, 0])
    hidden = np.random.default_rng(seed).random(draw.X.shape) < gaps
    name = f"{noise}, {ratio:g}, K = {n_components}, {'gaps' if gaps else 'whole'}"
    return Case(name, "real", draw.X, hidden, *draw.truth, n_components)


def integers(n_components: int, gaps: float, seed: int) -> Case:
    """Counts of the model itself."""
    X, atoms, activations = sample_skellam_snmf(
        500, 20, n_components, activation_shape=0.5, atom_shape=0.5, random_state=seed
    )
    hidden = np.random.default_rng(seed).random(X.shape) < gaps
    name = f"integers, K = {n_components}, {'gaps' if gaps else 'whole'}"
    return Case(name, "integer", X, hidden, activations, atoms[0] - atoms[1], n_components)


def real(name: str, n_components: int, seed: int) -> Case:
    """A real table."""
    X = load_table(name, 500)
    hidden = np.random.default_rng(seed).random(X.shape) < HIDDEN
    n_components = min(n_components, X.shape[1] - 1)
    return Case(f"{name}, K = {n_components}", "real", X, hidden, None, None, n_components)


def share_inside(truth: NDArray, lower: NDArray, upper: NDArray) -> float:
    """Share of the true values between the two ends."""
    return float(np.mean((lower <= truth) & (truth <= upper))) if truth.size else np.nan


def shares(case: Case, by: str) -> NDArray:
    """What intervals hold, (quantities, levels); NaN where nothing is known."""
    gappy = np.where(case.hidden, np.nan, case.X)
    options = {"likelihood": case.likelihood, "random_state": 0}
    if by in BOOTSTRAPS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SkellamSNMF(case.n_components, n_jobs=1, **options).fit(gappy)
            drawn = bootstrap(model, gappy, kind=by, n_jobs=1, random_state=0)
        nothing = [np.nan, np.nan]
        held = [[*shares_of_truth(case, model, drawn.at(q)), *nothing] for q in LEVELS]
        return np.array(held).T
    model = BayesianSkellamSNMF(case.n_components, posterior=by, **options)
    if case.components is None:
        model.set_params(fit_intercept=True)
    with quiet_and_alone(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(gappy)
    return np.column_stack([shares_of(case, model, gappy, level) for level in LEVELS])


def shares_of(case: Case, model: BayesianSkellamSNMF, gappy: NDArray, level: float) -> list[float]:
    """What intervals of one level hold, one number for each of `QUANTITIES`."""
    found = [np.nan] * 4
    if case.components is not None:
        found = shares_of_truth(case, model, model.interval(level))
    if not case.hidden.any():
        return [*found, np.nan, np.nan]
    _, *ends = model.impute(gappy, return_interval=True, level=level)
    cells, *ends = (array[case.hidden] for array in (case.X, *ends))
    large = np.abs(cells) >= np.quantile(np.abs(cells), 0.9)
    of_large = share_inside(cells[large], *(end[large] for end in ends))
    return [*found, share_inside(cells, *ends), of_large]


def shares_of_truth(case: Case, model: Any, intervals: Any) -> list[float]:
    """What intervals hold of activations, components, amounts and means of cells."""
    activations, components = case.activations, case.components
    assert activations is not None and components is not None
    order = match(model.components_, components)
    sizes = np.abs(components).sum(axis=1)
    return [
        share_inside(activations, *(end[:, order] for end in intervals.activations)),
        share_inside(components, *(end[order] for end in intervals.components)),
        share_inside(activations * sizes, *(end[:, order] for end in intervals.amounts)),
        share_inside(activations @ components, *intervals.cells),
    ]


def match(found: NDArray, true: NDArray) -> NDArray:
    """Index of the found component for each true one."""
    lengths = np.outer(np.linalg.norm(true, axis=1), np.linalg.norm(found, axis=1))
    cosines = true @ found.T / np.where(lengths > 0, lengths, 1)
    return linear_sum_assignment(-cosines)[1]


def cases(parts: list[str], seed: int) -> list[partial]:
    """All data, each made when it is needed."""
    made = []
    if "simulated" in parts:
        made += [
            partial(simulated, noise, ratio, n_components, gaps, seed)
            for noise in NOISES
            for ratio in RATIOS
            for n_components in NUMBERS
            for gaps in (0.0, HIDDEN)
        ]
    if "integers" in parts:
        made += [partial(integers, K, gaps, seed) for K in NUMBERS for gaps in (0.0, HIDDEN)]
    if "real" in parts:
        made += [partial(real, name, K, seed) for name in TABLES for K in (4, 8)]
    return made


def measure(make: partial, by: str) -> tuple[str, NDArray]:
    """The name of some data, and what intervals hold there."""
    case = make()
    return case.name, shares(case, by)


def picture(found: dict[str, NDArray], path: str) -> None:
    """What intervals of all levels hold, for each quantity."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(QUANTITIES), figsize=(16, 3.4), sharey=True)
    for quantity, name in enumerate(QUANTITIES):
        axis = axes[quantity]
        axis.plot([0, 1], [0, 1], color="0.6", lw=1)
        for held in found.values():
            axis.plot(LEVELS, held[quantity], color="C0", alpha=0.25, lw=1)
        means = np.nanmean([held[quantity] for held in found.values()], axis=0)
        axis.plot(LEVELS, means, color="C3", lw=2)
        axis.set(title=name, xlabel="level", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes[0].set_ylabel("share that intervals hold")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def in_percent(held: NDArray) -> list[str]:
    """For each quantity the shares at the levels that are shown."""
    columns = [LEVELS.index(level) for level in SHOWN]
    return [
        "–" if np.isnan(numbers).any() else " ".join(f"{100 * n:.0f}" for n in numbers)
        for numbers in held[:, columns]
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=2, help="data sets for each row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--parts", default="simulated,integers,real", help="of these", metavar="NAME,…"
    )
    parser.add_argument(
        "--by", default="auto", choices=("auto", "correlated", "mean-field", *BOOTSTRAPS)
    )
    parser.add_argument("--picture", metavar="PATH", help="draw calibration curves of all rows")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.draws)
    made = [make for seed in seeds for make in cases(options.parts.split(","), seed)]
    found: dict[str, list[NDArray]] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, held in pool.map(measure, made, [options.by] * len(made)):
            found.setdefault(name, []).append(held)
    means = {name: np.mean(parts, axis=0) for name, parts in found.items()}
    levels = ", ".join(f"{100 * level:.0f}" for level in SHOWN)
    print(f"Per cent in intervals of {levels} %, mean of {options.draws} data sets.\n")
    print("\n".join(table_head(["data", *QUANTITIES])))
    for name, held in means.items():
        print(row([name, *in_percent(held)]))
    ninety = np.array([held[:, LEVELS.index(0.9)] for held in means.values()])
    print()
    aim = f"{AIM[0]:.0%} to {AIM[1]:.0%}"
    for quantity, column in zip(QUANTITIES, ninety.T, strict=True):
        known = column[~np.isnan(column)]
        if len(known):
            share = np.mean((AIM[0] <= known) & (known <= AIM[1]))
            print(f"{quantity}: 90 % intervals hold {aim} in {share:.0%} of rows.")
    if options.picture:
        picture(means, options.picture)


if __name__ == "__main__":
    main()
