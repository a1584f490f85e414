"""Are factors found again? Simulated data, where they are known, for us and for others.

Prints Markdown tables of how near the found components and amounts are to the true ones, and draws
them. Run it with ``python benchmarks/recovery.py --jobs 2 --picture recovery.png``; ``--rows``,
``--snr`` and ``--methods`` choose a part of it, ``--save`` keeps all numbers in a file, and
``--load`` makes tables and picture of such files again. Four draws of all take about an hour of one
core, nearly all of it for the tuned method.

``simulated.py`` has the kinds of data: 500 samples, 20 features and 4 components in the plain one,
activations that are gamma of shape 0.5, normal components, Gaussian noise; each other row changes
one thing. ``recovery_peers.py`` has the methods:

- *seminmf*: ``SkellamSNMF``, nothing set but the number of components; *paper*: the same with the
  paper's M = ∞; *euclidean*: ``EuclideanSNMF``;
- *dictionary*: scikit-learn's ``DictionaryLearning`` with a positive code, with the alpha (in units
  of the noise) and, where they matter, the units of features that come nearest to the truth: tuned
  with what nobody knows; *dictionary-1*: alpha 1, on data in units of their standard deviation;
- *ica*, *nmf* (on data less their minimum), *pca*: scikit-learn's; signs of components do not count
  for *ica* and *pca*.

Components are matched by the Hungarian method, on cosines. "cos" is the mean cosine of the pairs,
"corr" the mean correlation of true and found amounts (activation · Σ|component|).

Three more questions are asked with an option each: ``--stability``, do other seeds find other
components; ``--gaps``, how well hidden cells of real tables are filled; ``--units``, does the unit
of the data or of its features matter. ``recovery_real.py`` has them. ``--told`` asks what it brings
to say what is known of noise or signs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING

import pandas as pd
import recovery_real
from joblib import Parallel, delayed
from real_tables import TABLES
from recovery_peers import DEFAULT, METHODS, PROTOTYPE, methods
from recovery_scores import score
from recovery_told import told
from simulated import KINDS
from tables import row, table_head

from seminmf._views.pictures import AMBER, BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY
from seminmf.experiments._hidden import quiet_and_alone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The default should be behind by no more than this: the best tuned method, and any other.
BEHIND_TUNED, BEHIND_UNTUNED = 0.01, 0.005
# Colours, marks, and who is drawn over whom.
STYLES = {
    DEFAULT: {"color": ORANGE, "marker": "o", "s": 55, "zorder": 5},
    "paper": {"color": BLACK, "marker": "o", "s": 16, "zorder": 6},
    "euclidean": {"color": GREY, "marker": "o", "s": 22},
    "dictionary": {"color": BLUE, "marker": "D", "s": 38, "zorder": 4},
    "dictionary-1": {"color": SKY, "marker": "D", "s": 22},
    "ica": {"color": GREEN, "marker": "^", "s": 32},
    "nmf": {"color": AMBER, "marker": "x", "s": 26},
    "pca": {"color": GREY, "marker": "x", "s": 26},
    PROTOTYPE: {"color": PINK, "marker": "s", "s": 28, "zorder": 3},
}
# 1 − cosine, on a logarithmic axis: ends, and what is written there.
NEAREST, FARTHEST = 3e-4, 1.0
COSINES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)


# --- runs ---------------------------------------------------------------------------------------


def compare(kind: str, ratio: float, number: int, options: argparse.Namespace) -> list[dict]:
    """All methods on one draw; a record for each."""
    draw = KINDS[kind].draw(ratio, [options.seed, number])
    records = []
    for name, method in methods(options.methods, options.prototype).items():
        begin = time.perf_counter()
        with quiet_and_alone():
            found = method.fit(draw, number, KINDS[kind].positive)
        seconds = time.perf_counter() - begin
        if found is not None:
            found = found.with_features_over(draw.units)
            scores = score(found, draw.truth, flip=method.flips)._asdict()
            key = {"kind": kind, "snr": ratio, "draw": number, "method": name}
            records.append(key | scores | {"seconds": seconds})
    return records


def run(options: argparse.Namespace) -> pd.DataFrame:
    """A record for each draw and method."""
    # What takes longest comes first, so that no core is idle at the end.
    kinds = sorted(options.rows, key=lambda name: -KINDS[name].n_samples * KINDS[name].n_features)
    tasks = product(kinds, options.snr, range(options.draws))
    parallel = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    found = parallel(delayed(compare)(*task, options) for task in tasks)
    return pd.DataFrame([record for records in found for record in records])


# --- tables -------------------------------------------------------------------------------------


def means_of(records: pd.DataFrame) -> pd.DataFrame:
    """Means over draws, by signal / noise, kind and method."""
    return records.drop(columns="draw").groupby(["snr", "kind", "method"]).mean()


def in_order(names: pd.Series, order: dict) -> list[str]:
    """The names that occur, in the order of a dictionary."""
    present = set(names)
    return [name for name in order if name in present]


def tables(records: pd.DataFrame) -> Iterator[str]:
    """All tables, line by line."""
    kinds = in_order(records["kind"], KINDS)
    names = in_order(records["method"], STYLES)
    means = means_of(records)
    ratios = sorted(set(records["snr"]))
    for ratio in ratios:
        yield f"\nSignal / noise {ratio:g}: cos corr\n"
        yield from main_table(means.loc[ratio], kinds, names)
    if DEFAULT in names:
        for ratio in ratios:
            yield from verdicts(means.loc[ratio], ratio, kinds, names)
        yield from own_table(means, "slope", "slope of found amounts over true ones", kinds)
        yield from own_table(means, "labels", "share of labels that are right", kinds)
    yield from seconds_table(records, names)


def main_table(means: pd.DataFrame, kinds: list[str], names: list[str]) -> Iterator[str]:
    """Cosine and correlation of each kind and method."""

    def cell(kind: str, name: str) -> str:
        if (kind, name) not in means.index:
            return "–"
        found = means.loc[kind, name]
        return f"{found['cosine']:.3f} {found['correlation']:.3f}"

    yield from table_head(["", *names])
    for kind in kinds:
        yield row([kind, *(cell(kind, name) for name in names)])


def verdicts(
    means: pd.DataFrame, ratio: float, kinds: list[str], names: list[str]
) -> Iterator[str]:
    """In how many rows the default is as good as the others, and where it is not.

    Rows that no other method can do do not count; with gaps there is no tuned one.
    """
    peers = [name for name in names if name in METHODS and METHODS[name].peer]
    for measure, title in (("cosine", "cos"), ("correlation", "corr")):
        values = means[measure].unstack("method").reindex(index=kinds, columns=names)
        compared = values[values[peers].notna().any(axis=1)]
        behind = {kind: shortfalls(numbers, peers) for kind, numbers in compared.iterrows()}
        worse = [f"{kind} ({text})" for kind, text in behind.items() if text]
        yield (
            f"\nSignal / noise {ratio:g}, {title}: {DEFAULT} is at most {BEHIND_TUNED} behind the "
            f"best tuned method and {BEHIND_UNTUNED} behind others in "
            f"{len(compared) - len(worse)} of {len(compared)} rows."
        )
        if worse:
            yield f"Not in {'; '.join(worse)}."


def shortfalls(values: pd.Series, peers: list[str]) -> str:
    """The methods that are too far ahead of the default, and by how much."""
    ahead = {name: float(values[name] - values[DEFAULT]) for name in peers}
    limits = {name: BEHIND_TUNED if METHODS[name].tuned else BEHIND_UNTUNED for name in peers}
    return ", ".join(f"{name} +{far:.3f}" for name, far in ahead.items() if far > limits[name])


def own_table(means: pd.DataFrame, measure: str, title: str, kinds: list[str]) -> Iterator[str]:
    """A measure of the default, by kind and signal / noise."""
    values = means[measure].unstack("snr").xs(DEFAULT, level="method").reindex(kinds)
    yield f"\n{DEFAULT}: {title}\n"
    yield from table_head(["signal / noise", *(f"{ratio:g}" for ratio in values)])
    for kind, numbers in values.iterrows():
        yield row([kind, *(f"{number:.3f}" for number in numbers)])


def seconds_table(records: pd.DataFrame, names: list[str]) -> Iterator[str]:
    """Seconds of a fit; those of a tuned method are for all its settings.

    They are medians, as the first fit may have to compile.
    """
    seconds = records.groupby("method")["seconds"].median()
    yield "\nSeconds of one core for a draw, median of all\n"
    yield from table_head(names)
    yield row(f"{seconds[name]:.2f}" for name in names)


# --- picture ------------------------------------------------------------------------------------


def picture(records: pd.DataFrame, path: str) -> None:
    """Cosines by kind, a panel for each signal / noise, methods as dots."""
    from matplotlib.figure import Figure

    kinds = in_order(records["kind"], KINDS)
    means = means_of(records)["cosine"]
    ratios = sorted(set(records["snr"]))
    figure = Figure(figsize=(2 + 4.6 * len(ratios), 2 + 0.28 * len(kinds)), layout="constrained")
    panels = figure.subplots(1, len(ratios), sharey=True, squeeze=False)[0]
    for axis, ratio in zip(panels, ratios, strict=True):
        draw_panel(axis, means.loc[ratio], kinds)
        axis.set_title(f"signal / noise {ratio:g}")
    panels[0].set_yticks(range(len(kinds)), kinds)
    panels[0].set_ylim(len(kinds) - 0.5, -0.5)
    handles = {}
    for axis in panels:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    names = in_order(records["method"], STYLES)
    marks = [handles[name] for name in names]
    figure.legend(marks, names, loc="outside lower center", ncols=3 * len(ratios))
    figure.savefig(path, dpi=110)


def draw_panel(axis: Axes, cosines: pd.Series, kinds: list[str]) -> None:
    """One signal / noise; the right is good, and each step towards it halves what is missing."""
    for line in range(len(kinds)):
        axis.axhline(line, color="0.92", linewidth=6, zorder=0)
    for name in in_order(cosines.index.get_level_values("method"), STYLES):
        values = cosines.xs(name, level="method").reindex(kinds)
        missing = (1 - values).clip(NEAREST, FARTHEST)
        axis.scatter(missing, range(len(kinds)), label=name, linewidth=1.2, **STYLES[name])
    axis.set_xscale("log")
    axis.set_xlim(1.15 * FARTHEST, NEAREST / 1.15)
    axis.set_xticks([1 - cosine for cosine in COSINES], [f"{cosine:g}" for cosine in COSINES])
    axis.tick_params(axis="x", rotation=90, labelsize="small")
    axis.set_xlabel("mean cosine of true and found components")
    axis.minorticks_off()
    axis.grid(axis="x", alpha=0.4)


# --- the command --------------------------------------------------------------------------------


def names_among(known: dict) -> Callable[[str], list[str]]:
    """A list of names, separated by commas; the error names those that are known."""

    def names(text: str) -> list[str]:
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}; known: {', '.join(known)}"
            )
        return chosen

    return names


def numbers(text: str) -> list[float]:
    """Numbers, separated by commas."""
    return [float(part) for part in text.split(",")]


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=4, help="data sets for each row")
    parser.add_argument("--rows", type=names_among(KINDS), default=list(KINDS), metavar="NAME,…")
    parser.add_argument("--snr", type=numbers, default=[1.0, 3.0, 10.0], metavar="1,3,10")
    parser.add_argument("--methods", type=names_among(STYLES), metavar="NAME,…")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--prototype", metavar="PATH", help="a module with gfit3, as a method")
    parser.add_argument("--picture", metavar="PATH", help="draw cosines too")
    parser.add_argument("--save", metavar="PATH", help="write all numbers, CSV")
    parser.add_argument("--load", metavar="PATH", nargs="+", help="read numbers, run nothing")
    questions = parser.add_mutually_exclusive_group()
    questions.add_argument("--stability", action="store_true", help="do seeds agree?")
    questions.add_argument("--gaps", action="store_true", help="how are hidden cells filled?")
    questions.add_argument("--units", action="store_true", help="do units matter?")
    questions.add_argument("--empty", action="store_true", help="is a posterior empty?")
    questions.add_argument("--told", action="store_true", help="what does knowing more bring?")
    parser.add_argument(
        "--tables",
        type=names_among(TABLES),
        default=list(TABLES),
        metavar="NAME,…",
        help="real ones, for these questions",
    )
    parser.add_argument("--bayes", action="store_true", help="with --gaps: by posteriors")
    parser.add_argument("--most-rows", type=int, default=1000, help="of a real table")
    options = parser.parse_args()
    if options.methods and PROTOTYPE in options.methods and not options.prototype:
        parser.error("the prototype needs --prototype PATH")
    return options


def main() -> None:
    """Print the tables, and draw the picture."""
    options = parse()
    begin = time.perf_counter()
    if recovery_real.is_asked(options):
        recovery_real.answer(options)
    elif options.told:
        print("\n".join(told(options)))
    else:
        if options.load:
            records = pd.concat([pd.read_csv(path) for path in options.load])
        else:
            records = run(options)
        if options.save:
            records.to_csv(options.save, index=False)
        counts = records.groupby(["kind", "snr", "method"]).size()
        print("Means of", " to ".join(map(str, sorted({counts.min(), counts.max()}))), "draws.")
        print("\n".join(tables(records)))
        if options.picture:
            picture(records, options.picture)
    print(f"\n{(time.perf_counter() - begin) / 60:.1f} minutes.")


if __name__ == "__main__":
    main()
