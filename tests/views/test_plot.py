"""seminmf.plot: the axes that were given, the right numbers on them, and any name drawn as text."""

import os
import subprocess
import sys
import warnings
from io import BytesIO
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from seminmf import (
    BayesianSkellamSNMF,
    EuclideanSNMF,
    SkellamSNMF,
    bootstrap,
    plot,
    sample_skellam_snmf,
    select_n_components,
)
from seminmf._views.pictures import BLUE, GREY, ORANGE
from seminmf._views.shares import shares
from seminmf.plot._frame import round_below
from seminmf.plot._names import tidy

ESTIMATORS = [SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF]
NAMES = [f"feature {i}" for i in range(6)]
HOSTILE = [r"$\frac{", "<b>", "a\nb", "", "x" * 300, "$a$ \\undefined{} \x00 \ud800 _^%#&"]


def data(n_samples=40, n_features=6, n_components=3, seed=0):
    """Mixtures of signed components with a little noise, and a gap."""
    rng = np.random.default_rng(seed)
    components = rng.normal(size=(n_components, n_features))
    activations = rng.gamma(0.5, 3.0, size=(n_samples, n_components))
    X = activations @ components + 0.1 * rng.normal(size=(n_samples, n_features))
    if X.size > 1:
        X[0, 0] = np.nan
    return X


def fit(estimator=SkellamSNMF, X=None, n_components=3, **options):
    options = {"max_iter": 30, "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator(n_components, **options).fit(data() if X is None else X)


def new_axes(width=8.0, height=5.0):
    return Figure(figsize=(width, height), layout="constrained").subplots()


def render(ax):
    """Draw for good: many errors in texts and scales show only then."""
    buffer = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.savefig(buffer, dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG")
    return ax


def labels_of(axis, minor=False):
    return [text.get_text() for text in axis.get_ticklabels(minor=minor)]


def all_functions(model, X):
    functions = {
        "bars": lambda ax=None: plot.components(model, ax, kind="bars"),
        "heatmap": lambda ax=None: plot.components(model, ax, kind="heatmap"),
        "activations": lambda ax=None: plot.activations(model, ax),
        "sorted": lambda ax=None: plot.activations(model, ax, X, sort=True),
        "convergence": lambda ax=None: plot.convergence(model, ax),
        "reconstruction": lambda ax=None: plot.reconstruction(model, X, ax),
        "clusters": lambda ax=None: plot.clusters(model, ax, X),
        "labels": lambda ax=None: plot.clusters(model, ax=ax, labels=np.arange(len(X)) % 2),
    }
    if isinstance(model, BayesianSkellamSNMF):
        functions["intervals"] = lambda ax=None: plot.intervals(model, ax)
        functions["sample"] = lambda ax=None: plot.intervals(model, ax, sample=0)
    return functions


@pytest.fixture(scope="module", params=ESTIMATORS)
def model(request):
    return fit(request.param, pd.DataFrame(data(), columns=NAMES))


@pytest.fixture(scope="module")
def bayesian():
    return fit(BayesianSkellamSNMF, pd.DataFrame(data(), columns=NAMES))


@pytest.fixture(scope="module")
def found():
    X, _, _ = sample_skellam_snmf(30, 5, 2, random_state=0)
    estimator = BayesianSkellamSNMF(likelihood="integer")
    return select_n_components(X, [1, 2], estimator=estimator, n_init=1, n_jobs=1, random_state=0)


# --- for all functions ----------------------------------------------------------------------------


def test_axes_given_are_drawn_on_and_returned(model):
    for name, draw in all_functions(model, pd.DataFrame(data(), columns=NAMES)).items():
        ax = new_axes()
        assert draw(ax) is ax, name
        assert ax.has_data(), name


def test_new_figures(bayesian):
    for draw in all_functions(bayesian, pd.DataFrame(data(), columns=NAMES)).values():
        render(draw())


def render_all(model, X):
    """Draw all pictures on small axes without a layout, which is faster."""
    for draw in all_functions(model, X).values():
        render(draw(Figure(figsize=(4, 3)).subplots()))


@pytest.mark.filterwarnings("ignore:. samples and . features have no observed cell")
@pytest.mark.parametrize(
    ("estimator", "shape", "n_components", "dtype"),
    [
        (SkellamSNMF, (1, 1), 1, "float64"),
        (SkellamSNMF, (3, 4), 9, "float32"),
        (BayesianSkellamSNMF, (1, 4), 1, "float32"),
        (BayesianSkellamSNMF, (5, 1), 3, "float64"),
        (EuclideanSNMF, (1, 1), 1, "float32"),
        (EuclideanSNMF, (5, 1), 3, "float64"),
    ],
)
def test_small_sizes(estimator, shape, n_components, dtype):
    X = data(*shape).astype(dtype)
    render_all(fit(estimator, X, n_components, max_iter=3), X)


@pytest.mark.parametrize(
    ("estimator", "unit"),
    [
        (SkellamSNMF, 0.0),
        (EuclideanSNMF, 0.0),
        (BayesianSkellamSNMF, 1e-300),
        (BayesianSkellamSNMF, 1e300),
        (EuclideanSNMF, 1e300),
    ],
)
def test_zeros_and_extreme_units(estimator, unit):
    X = unit * data(10, 4, 2)
    render_all(fit(estimator, X, 2), X)


def test_models_that_were_not_fitted_are_refused():
    for name, draw in all_functions(BayesianSkellamSNMF(), data()).items():
        with pytest.raises(NotFittedError):
            draw()
            pytest.fail(name)


@pytest.mark.parametrize("other", [data(), "model", SkellamSNMF, None])
def test_other_objects_are_no_models(other):
    for name, draw in all_functions(other, data()).items():
        with pytest.raises(ValueError, match="model must be a SkellamSNMF, BayesianSkellamSNMF or"):
            draw()
            pytest.fail(name)


def test_other_objects_are_no_axes(bayesian, found):
    functions = all_functions(bayesian, pd.DataFrame(data(), columns=NAMES))
    for draw in [*functions.values(), lambda ax: plot.selection(found, ax)]:
        with pytest.raises(ValueError, match="ax must be a matplotlib Axes or None; found an obj"):
            draw(Figure())


def test_matplotlib_is_imported_when_it_is_used():
    code = "import sys, seminmf.plot; from seminmf import plot; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "seminmf.plot" in loaded
    assert "matplotlib" not in loaded


def test_pyplot_knows_nothing_of_the_figures(bayesian):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    for draw in all_functions(bayesian, pd.DataFrame(data(), columns=NAMES)).values():
        draw()
    assert plt.get_fignums() == before


# --- shares ---------------------------------------------------------------------------------------


def test_shares_are_those_of_all_products(model):
    products = np.abs(model.activations_[:, :, None] * model.components_).sum(axis=(0, 2))
    assert_allclose(shares(model), products / products.sum())


@pytest.mark.parametrize("unit", [1e-300, 1e-100, 1e300])
def test_shares_do_not_depend_on_the_unit(unit):
    expected = shares(fit(EuclideanSNMF, data()))
    assert_allclose(shares(fit(EuclideanSNMF, unit * data())), expected, rtol=1e-6)


def test_shares_of_nothing_are_zero():
    assert_array_equal(shares(fit(EuclideanSNMF, np.zeros((4, 3)), 2)), 0)


# --- components -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["share", "index"])
def test_heat_map_of_components(model, order):
    ax = plot.components(model, kind="heatmap", order=order)
    expected = np.argsort(-shares(model)) if order == "share" else np.arange(3)
    image = ax.images[0]
    assert_allclose(image.get_array(), model.components_[expected])
    low, high = image.get_clim()
    assert low == -high
    assert high == pytest.approx(np.abs(model.components_).max())
    percentages = [f"{k} ({shares(model)[k]:.0%})" for k in expected]
    assert labels_of(ax.yaxis) == percentages
    assert labels_of(ax.xaxis) == NAMES


def test_both_signs_are_equally_far_from_white():
    ax = plot.components(fit(), kind="heatmap")
    image = ax.images[0]
    assert min(image.cmap(image.norm(0.0))[:3]) > 0.95
    limit = image.get_clim()[1]
    positive, negative = (image.cmap(image.norm(sign * limit)) for sign in (1, -1))
    assert positive[0] > positive[2]
    assert negative[2] > negative[0]


@pytest.mark.parametrize("order", ["share", "index"])
def test_bars_of_components(model, order):
    ax = plot.components(model, kind="bars", order=order)
    expected = np.argsort(-shares(model)) if order == "share" else np.arange(3)
    values = model.components_[expected]
    bars = [bar for container in ax.containers for bar in container]
    widths = np.array([bar.get_width() for bar in bars]).reshape(3, 6)
    zeros = np.array([line.get_xdata()[0] for line in ax.lines])
    assert_allclose(widths, values)
    assert_allclose([bar.get_x() for bar in bars], np.repeat(zeros, 6))
    colours = [to_hex(bar.get_facecolor()).upper() for bar in bars]
    assert_array_equal(colours, np.where(values < 0, BLUE, ORANGE).ravel())
    assert [text.split("\n")[0] for text in labels_of(ax.xaxis)] == [str(k) for k in expected]
    assert labels_of(ax.yaxis) == NAMES
    # A column has a width of its own.
    assert np.diff(zeros).min() > 2 * np.abs(values).max()


def test_value_ticks_of_bars_say_the_value():
    ax = plot.components(fit(), kind="bars")
    zero = ax.lines[0].get_xdata()[0]
    ticks = ax.get_xticks(minor=True)[:2] - zero
    written = [float(text.replace("−", "-")) for text in labels_of(ax.xaxis, minor=True)[:2]]
    assert_allclose(ticks, written)


def test_narrow_columns_of_bars_have_their_ticks_in_the_label():
    ax = render(plot.components(fit(n_components=30), kind="bars"))
    assert set(labels_of(ax.xaxis, minor=True)) == {""}
    value = ax.get_xticks(minor=True)[1]
    assert ax.get_xlabel().endswith(f"ticks at ±{value:g}")


@pytest.mark.parametrize(
    ("n_features", "n_components", "options", "bars"),
    [
        (30, 8, {}, True),
        (31, 8, {}, False),
        (30, 9, {}, False),
        (31, 8, {"max_features": 30}, True),
    ],
)
def test_kind_follows_the_size(n_features, n_components, options, bars):
    X = data(12, n_features)
    ax = plot.components(fit(X=X, n_components=n_components, max_iter=1), **options)
    assert (len(ax.containers) > 0, len(ax.images)) == (bars, not bars)


@pytest.mark.parametrize("kind", ["bars", "heatmap"])
def test_largest_features_are_chosen_and_stay_in_order(model, kind):
    ax = plot.components(model, kind=kind, max_features=2)
    sizes = np.abs(model.components_)
    relative = (sizes / sizes.max(axis=1, keepdims=True)).max(axis=0)
    largest = np.sort(np.argsort(-relative, kind="stable")[:2])
    axis = ax.yaxis if kind == "bars" else ax.xaxis
    assert labels_of(axis) == [NAMES[i] for i in largest]
    assert axis.get_label_text() == "feature (the 2 largest of 6)"


@pytest.mark.parametrize("kind", ["bars", "heatmap"])
def test_each_component_shows_its_largest_features(kind):
    model = fit(EuclideanSNMF)
    model._components_of_fit = np.array(
        [[9.0, 8, 7, 0, 0, 0], [0, 0, 0, 1, 0.9, 0], [0, 0, 0, 0, 0, -2]]
    )
    ax = plot.components(model, kind=kind, max_features=3)
    assert labels_of(ax.yaxis if kind == "bars" else ax.xaxis) == ["0", "3", "5"]


@pytest.mark.parametrize(("kind", "most"), [("bars", 30), ("heatmap", 1000)])
def test_very_many_features_are_not_all_drawn(kind, most):
    model = fit(X=data(5, 1200), max_iter=1)
    ax = plot.components(model, kind=kind)
    drawn = len(ax.containers[0]) if kind == "bars" else ax.images[0].get_array().shape[1]
    assert drawn == most


def test_scales_of_components(model):
    raw = model.components_
    means = model.activations_.mean(axis=0)[:, None]
    for scale, expected in (
        ("none", raw),
        ("data", raw * means),
        ("each", raw / np.abs(raw).max(axis=1, keepdims=True)),
    ):
        ax = plot.components(model, kind="heatmap", order="index", scale=scale)
        assert_allclose(ax.images[0].get_array(), expected, rtol=1e-6)


def test_figures_grow_with_their_content():
    sizes = [
        plot.components(fit(X=data(20, n), n_components=k, max_iter=1)).figure.get_size_inches()
        for n, k in ((5, 2), (60, 20))
    ]
    assert (sizes[1] > sizes[0]).all()


@pytest.mark.parametrize("n_features", [34, 300])
@pytest.mark.parametrize("kind", ["bars", "heatmap"])
def test_labels_do_not_overlap(kind, n_features):
    names = [f"a rather long name of feature number {i}" for i in range(n_features)]
    X = pd.DataFrame(data(20, n_features), columns=names)
    ax = render(plot.components(fit(X=X, n_components=12, max_iter=1), kind=kind))
    for axis, side in ((ax.xaxis, "x"), (ax.yaxis, "y")):
        boxes = [text.get_window_extent() for text in axis.get_ticklabels() if text.get_text()]
        ends = sorted((getattr(box, f"{side}0"), getattr(box, f"{side}1")) for box in boxes)
        assert len(ends) > 10
        assert all(first[1] <= second[0] + 1 for first, second in pairwise(ends))


def test_numbers_are_the_names_of_nameless_features():
    ax = plot.components(fit(), kind="heatmap")
    assert labels_of(ax.xaxis) == list("012345")


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain", "plain"),
        (7, "7"),
        ("a\nb\t c", "a b c"),
        ("\x00\ud800\u202e", ""),
        (r"$\frac{", r"$\frac{"),
    ],
)
def test_tidy_names(name, text):
    assert tidy(name) == text


def test_of_long_names_both_ends_are_left():
    name = "".join(map(str, range(100)))
    first, last = tidy(name).split("…")
    assert name.startswith(first) and name.endswith(last)
    assert 5 < len(last) <= len(first) < 20
    assert tidy(first + last) == first + last  # which is not long


@pytest.mark.parametrize("kind", ["bars", "heatmap"])
def test_hostile_names_are_text(kind):
    model = fit()
    ax = plot.components(model, kind=kind, feature_names=HOSTILE)
    axis = ax.yaxis if kind == "bars" else ax.xaxis
    shown = labels_of(axis)
    assert shown[:4] == [r"$\frac{", "<b>", "a b", "3"]
    assert shown[4] == tidy("x" * 300) and shown[5].startswith("$a$")
    render(ax)
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    assert not any(text.get_parse_math() for text in axis.get_ticklabels())
    render(ax)


def test_hostile_names_of_the_fit_and_of_labels():
    names = ["$a$ \\b{", "<b>", "a\nb", "", "x" * 300, "$^$"]
    X = pd.DataFrame(data(), columns=names)
    model = fit(BayesianSkellamSNMF, X)
    render(plot.components(model))
    render(plot.intervals(model))
    render(plot.clusters(model, labels=np.array(HOSTILE, dtype=object)[np.arange(40) % 6]))


# --- activations ----------------------------------------------------------------------------------


def test_heat_map_of_activations(model):
    ax = plot.activations(model)
    order = np.argsort(-shares(model))
    assert_allclose(ax.images[0].get_array(), model.activations_.T[order])
    assert ax.images[0].get_clim()[0] == 0
    assert [text.split()[0] for text in labels_of(ax.yaxis)] == [str(k) for k in order]


def test_activations_of_other_samples(model):
    X = pd.DataFrame(data(seed=0)[:7], columns=NAMES)
    ax = plot.activations(model, X=X, order="index")
    assert_allclose(ax.images[0].get_array(), model.transform(X).T)


def test_sorted_activations(model):
    X = pd.DataFrame(data(), columns=NAMES)
    ax = plot.activations(model, X=X, sort=True, order="index")
    drawn = ax.images[0].get_array().T
    activations, clusters = model.transform(X), model.predict(X)
    strengths = activations[np.arange(len(X)), clusters]
    expected = sorted(range(len(X)), key=lambda j: (clusters[j], -strengths[j]))
    assert_allclose(drawn, activations[expected])
    sizes = np.bincount(clusters, minlength=3)
    borders = np.cumsum(sizes[sizes > 0])[:-1] - 0.5
    assert_allclose([line.get_xdata()[0] for line in ax.lines], borders)


def test_many_samples_become_means():
    X = np.tile(data(10), (150, 1))
    model = fit(X=X)
    ax = plot.activations(model, order="index")
    image = ax.images[0]
    n_columns = image.get_array().shape[1]
    assert 100 < n_columns < 1500 and 1500 % n_columns == 0
    groups = model.activations_.reshape(n_columns, -1, 3)
    assert_allclose(image.get_array(), groups.mean(axis=1).T)
    assert_allclose(image.get_extent()[:2], (-0.5, 1499.5))


def test_names_of_clusters_do_not_overlap():
    model = fit(n_components=30)
    ax = render(plot.activations(model, new_axes(3, 3), sort=True))
    boxes = [text.get_window_extent() for text in ax.get_xticklabels() if text.get_text()]
    assert all(first.x1 <= second.x0 for first, second in pairwise(boxes))


# --- convergence ----------------------------------------------------------------------------------


def test_distances_from_the_end(model):
    ax = plot.convergence(model)
    values = getattr(model, "lower_bounds_", None)
    values = model.objectives_ if values is None else values
    expected = values[-1] - values[:-1]
    x, y = ax.lines[0].get_data()
    if getattr(model, "posterior_", None) == "correlated":
        assert_array_equal(y, values)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("sweep", "log-likelihood")
        return
    assert_allclose(y, expected[expected > 0])
    assert_array_equal(x, np.flatnonzero(expected > 0) + 1)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_ylabel().startswith("lower bound" if hasattr(model, "lower_bound_") else "obj")


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("options", "title"),
    [
        ({"max_iter": 0}, "not converged: stopped by max_iter after 0 iterations"),
        ({"max_iter": 1, "tol": 0}, "not converged: stopped by max_iter after 1 iteration"),
        ({"max_iter": 1000, "tol": 1e-2}, "converged after "),
    ],
)
def test_why_the_fit_ended(estimator, options, title):
    if estimator is BayesianSkellamSNMF:
        options = {**options, "posterior": "mean-field"}
    ax = plot.convergence(fit(estimator, **options))
    assert ax.get_title().startswith(title)
    if options["max_iter"] == 0:
        assert [text.get_text() for text in ax.texts] == ["No iterations"]


def test_interrupted_fit():
    model = fit()
    model.stop_reason_ = "interrupted"
    title = f"not converged: interrupted after {model.n_iter_} iterations"
    assert plot.convergence(model).get_title() == title


def test_objective_that_does_not_change():
    model = fit()
    model.objectives_ = np.full(31, -5.0)
    ax = render(plot.convergence(model))
    assert [text.get_text() for text in ax.texts] == ["The objective did not change"]


# --- reconstruction -------------------------------------------------------------------------------


def test_reconstructed_cells(model):
    X = pd.DataFrame(data(), columns=NAMES)
    ax = plot.reconstruction(model, X)
    observed = ~np.isnan(data())
    x, fitted = ax.lines[0].get_data()
    assert_allclose(x, data()[observed])
    assert_allclose(fitted, model.inverse_transform(model.transform(X))[observed])
    error = np.sqrt(np.mean((x - fitted) ** 2))
    assert ax.get_title() == f"R² = {model.r2(X):.3f}, RMSE = {error:.3g}"
    assert ax.get_xlim() == ax.get_ylim()


def test_many_cells_are_counted():
    X = data(600)
    ax = render(plot.reconstruction(fit(X=X), X))
    assert ax.collections[0].get_array().sum() == np.sum(~np.isnan(X))


def test_cells_far_out_are_counted_but_not_drawn():
    X = data(2000, 3, 2)
    X[5, 1] = 1e4
    ax = plot.reconstruction(fit(EuclideanSNMF, X, 2), X)
    assert ax.get_title().endswith(f"\n1 of {np.sum(~np.isnan(X))} cells are further out")
    assert ax.get_xlim()[1] < 1e3
    assert ax.collections[0].get_array().sum() == np.sum(~np.isnan(X)) - 1


def test_zeros_have_no_r_squared():
    X = np.zeros((4, 3))
    assert plot.reconstruction(fit(X=X, n_components=1), X).get_title().startswith("RMSE = ")


# --- clusters -------------------------------------------------------------------------------------


def test_sizes_of_clusters(model):
    X = pd.DataFrame(data(), columns=NAMES)
    ax = plot.clusters(model, X=X)
    clear, mixed = (np.array([bar.get_width() for bar in bars]) for bars in ax.containers)
    sizes = np.bincount(model.predict(X), minlength=3)
    assert_array_equal(clear + mixed, sizes)
    assert [text.get_text() for text in ax.texts] == [f"{n} ({n / 40:.0%})" for n in sizes]


def test_clear_samples():
    model = fit()
    amounts = np.array([[2.01, 1, 1], [1.9, 1, 1], [0, 0, 0], [0, 0, 3], [1, 4, 1]])
    model.activations_ = amounts / np.abs(model.components_).sum(axis=1)
    ax = plot.clusters(model)
    clear, mixed = ([bar.get_width() for bar in bars] for bars in ax.containers)
    assert clear == [1, 1, 1]
    assert mixed == [2, 0, 0]


def test_clusters_of_the_training_data_are_the_default(model):
    X = pd.DataFrame(data(), columns=NAMES)
    solved = fit(type(model), X, max_iter=3000)
    sizes = []
    for given in (None, X):
        bars = plot.clusters(solved, X=given).containers
        sizes.append(np.array([bar.get_width() for bar in [*bars[0], *bars[1]]]))
    assert_array_equal(*sizes)


def test_labels_and_clusters_in_their_best_order(model):
    X = pd.DataFrame(data(), columns=NAMES)
    found = model.predict(X)
    names = np.array(["zebra", "ant", "bee"])[found]
    names[0] = "bee" if names[0] == "ant" else "ant"
    ax = plot.clusters(model, X=X, labels=names)
    labels, numbers_of_clusters = labels_of(ax.yaxis), labels_of(ax.xaxis)
    sizes = [np.sum(names == label) for label in labels]
    assert sizes == sorted(sizes, reverse=True)
    cluster_of = {"zebra": "0", "ant": "1", "bee": "2"}
    assert numbers_of_clusters == [cluster_of[label] for label in labels]
    numbers = np.array([int(text.get_text()) for text in ax.texts]).reshape(3, 3)
    expected = [
        [np.sum((names == label) & (found == int(k))) for k in numbers_of_clusters]
        for label in labels
    ]
    assert_array_equal(numbers, expected)
    assert_allclose(ax.images[0].get_array(), numbers / numbers.sum(axis=1, keepdims=True))
    # 39 of 40.
    assert ax.get_title() == "98% of the samples are in matching clusters"


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(40) % 2 == 0,
        np.arange(40) % 7 / 2,
        [None, "a", 3, float("nan")] * 10,
        pd.Series(list("abcd") * 10, dtype="category"),
        [f"label {j}" for j in range(40)],
    ],
    ids=["bool", "float", "mixed", "categories", "all different"],
)
def test_labels_of_any_kind(bayesian, labels):
    ax = render(plot.clusters(bayesian, labels=labels))
    names = set(map(str, labels)) - {"None", "nan"}
    assert ax.images[0].get_array().shape[0] == len(names)


def test_cells_without_room_have_no_numbers(bayesian):
    ax = plot.clusters(bayesian, ax=new_axes(3, 2), labels=range(40))
    assert len(ax.texts) == 0


def test_labels_that_are_none_do_not_count(bayesian):
    clusters = np.argmax(bayesian.amounts_, axis=1)
    labels = np.array(list("abc"), dtype=object)[clusters]
    labels[:10] = None
    ax = plot.clusters(bayesian, labels=labels)
    assert ax.get_title().startswith("100%")
    with pytest.raises(ValueError, match="labels must name at least one class"):
        plot.clusters(bayesian, labels=[None] * 40)


@pytest.mark.parametrize("labels", [list("ab"), [["a"]] * 40, "label"])
def test_labels_of_another_length_are_refused(bayesian, labels):
    with pytest.raises(ValueError, match=r"labels must have the shape \(40,\), one for each"):
        plot.clusters(bayesian, labels=labels)


# --- intervals ------------------------------------------------------------------------------------


def drawn_intervals(ax):
    ends = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
    return ends[:, 0], ends[:, 1], ax.collections[1].get_offsets()[:, 0]


def test_intervals_of_a_component(bayesian):
    ax = plot.intervals(bayesian, component=2, level=0.5)
    lower, upper, means = drawn_intervals(ax)
    expected = bayesian.interval(0.5).components
    assert_allclose(lower, expected.lower[2])
    assert_allclose(upper, expected.upper[2])
    assert_allclose(means, bayesian.components_[2])
    assert labels_of(ax.yaxis) == NAMES
    assert ax.get_title() == "component 2: means and 50% intervals"
    colours = [to_hex(colour).upper() for colour in ax.collections[0].get_colors()]
    assert_array_equal(colours, np.where(lower > 0, ORANGE, np.where(upper < 0, BLUE, GREY)))


def test_intervals_of_a_sample(bayesian):
    ax = plot.intervals(bayesian, sample=4)
    lower, upper, means = drawn_intervals(ax)
    expected = bayesian.interval(0.9).activations
    assert_allclose(lower, expected.lower[4])
    assert_allclose(upper, expected.upper[4])
    assert_allclose(means, bayesian.activations_[4])
    assert labels_of(ax.yaxis) == ["0", "1", "2"]
    assert ax.get_title() == "sample 4: means and 90% intervals"


def test_sorted_intervals(bayesian):
    ax = plot.intervals(bayesian, component=1, sort=True)
    order = np.argsort(-bayesian.components_[1])
    lower, _, means = drawn_intervals(ax)
    assert_allclose(means, bayesian.components_[1][order])
    assert_allclose(lower, bayesian.interval().components.lower[1][order])
    assert labels_of(ax.yaxis) == [NAMES[i] for i in order]


def test_intervals_of_the_largest_entries(bayesian):
    ax = plot.intervals(bayesian, max_features=2, feature_names=range(6))
    largest = np.sort(np.argsort(-np.abs(bayesian.components_[0]))[:2])
    assert labels_of(ax.yaxis) == [str(i) for i in largest]
    assert ax.get_ylabel() == "feature (the 2 largest of 6)"


@pytest.mark.parametrize("estimator", [SkellamSNMF, EuclideanSNMF])
def test_point_estimates_have_no_intervals(estimator):
    model = fit(estimator)
    with pytest.raises(ValueError, match=f"have no intervals; found a {estimator.__name__}"):
        plot.intervals(model)


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF])
def test_intervals_of_a_bootstrap(estimator):
    model = fit(estimator)
    found = bootstrap(model, data(), n_draws=5, random_state=0)
    lower, upper, means = drawn_intervals(plot.intervals(model, bootstrap=found, level=0.5))
    expected = found.at(0.5).components
    assert_allclose(lower, expected.lower[0])
    assert_allclose(upper, expected.upper[0])
    assert_allclose(means, model.components_[0])
    render(plot.intervals(model, bootstrap=found, sample=1))
    with pytest.raises(ValueError, match=r"bootstrap must be what seminmf.bootstrap returns"):
        plot.intervals(model, bootstrap=expected)
    other = fit(n_components=2)
    with pytest.raises(ValueError, match="bootstrap must be one of the model"):
        plot.intervals(other, bootstrap=found)


# --- selection ------------------------------------------------------------------------------------


def test_selection_is_its_own_plot(found):
    ax = new_axes()
    assert plot.selection(found, ax) is ax
    assert ax.lines[0].get_ydata().tolist() == found.table["score"].tolist()
    render(plot.selection(found))
    with pytest.raises(ValueError, match="result must be what select_n_components returned"):
        plot.selection(found.table)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "options", "sentence"),
    [
        ("components", {"kind": "pie"}, "kind must be one of 'auto', 'bars', 'heatmap'; found"),
        ("components", {"order": "name"}, "order must be one of 'share', 'index'; found 'name'"),
        ("components", {"scale": 2}, "scale must be one of 'none', 'data', 'each'; found 2"),
        ("components", {"max_features": 0}, "max_features must be an integer of at least 1; found"),
        ("components", {"feature_names": ["a"]}, "a name for each of the 6 features; found 1"),
        ("components", {"feature_names": "abcdef"}, "must be a list of 6 names; found 'abcdef'"),
        ("components", {"feature_names": 6}, "feature_names must be a list of 6 names; found 6"),
        ("activations", {"order": None}, "order must be one of 'share', 'index'; found None"),
        ("activations", {"sort": "yes"}, "sort must be True or False; found 'yes'"),
        ("intervals", {"component": 3}, "component must be an integer from 0 to 2; found 3"),
        ("intervals", {"component": -1}, "component must be an integer from 0 to 2; found -1"),
        ("intervals", {"sample": 40}, "sample must be an integer from 0 to 39; found 40"),
        ("intervals", {"sample": 1.0}, "sample must be an integer from 0 to 39; found 1.0"),
        ("intervals", {"level": 1}, "level must be between 0 and 1; found 1"),
        ("intervals", {"sort": 1}, "sort must be True or False; found 1"),
        ("intervals", {"max_features": 2.5}, "max_features must be an integer of at least 1"),
    ],
)
def test_errors_leave_the_axes_empty(bayesian, function, options, sentence):
    ax = new_axes()
    with pytest.raises(ValueError, match=sentence):
        getattr(plot, function)(bayesian, ax, **options)
    assert not ax.has_data()
    assert len(ax.figure.axes) == 1


def test_data_of_another_width_are_refused(bayesian):
    wrong = pd.DataFrame(data(5, 4), columns=NAMES[:4])
    for draw in (
        lambda: plot.reconstruction(bayesian, wrong),
        lambda: plot.activations(bayesian, X=wrong),
        lambda: plot.clusters(bayesian, X=wrong),
        lambda: plot.clusters(bayesian, X=wrong, labels=range(5)),
    ):
        with pytest.raises(ValueError, match="feature 4\n- feature 5"):
            draw()


@pytest.mark.parametrize(
    ("value", "expected"), [(1.0, 1.0), (0.99, 0.5), (4.2, 2.0), (700, 500), (3e-5, 2e-5)]
)
def test_round_numbers(value, expected):
    assert round_below(value) == pytest.approx(expected)
