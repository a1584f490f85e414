"""Pictures of tensor models: factors by name, and what they share with matrices."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from seminmf import BayesianSkellamSNTF, SkellamSNTF, plot

CP = "nr,cr,tr->nct"
HOSTILE = "$\\frac{$ <b>\nline"


@cache
def labelled(kind=SkellamSNTF):
    """A model of 12 trials, 3 channels with names, 20 times in seconds."""
    xarray = pytest.importorskip("xarray")
    X = xarray.DataArray(
        np.random.default_rng(0).normal(size=(12, 3, 20)),
        dims=("trial", "channel", "time"),
        coords={"channel": ["a", HOSTILE, "c"], "time": np.arange(20) / 10},
    )
    return fit(X, CP, 2, "cr", kind), X


def fit(X, model, n_components, signed, kind=SkellamSNTF):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"tol": 1e-2, "n_init": 1, "random_state": 0, "n_jobs": 1}
        return kind(model, n_components, signed=signed, **options).fit(X)


def test_lines_and_heat_maps_have_the_names_of_the_data():
    model, X = labelled()
    trials, channels, times = plot.factors(model)
    trials.figure.canvas.draw()
    assert len(trials.images) == len(channels.images) == 1
    assert_allclose(channels.images[0].get_array(), model.factors_["cr"])
    assert (trials.get_ylabel(), channels.get_ylabel()) == ("trial", "channel")
    assert [text.get_text() for text in channels.get_yticklabels()] == [
        "a",
        "$\\frac{$ <b> line",
        "c",
    ]
    assert times.get_xlabel() == "time"
    for line, values in zip(times.lines, model.factors_["tr"].to_numpy().T, strict=True):
        assert_allclose(line.get_xdata(), X.time)
        assert_allclose(line.get_ydata(), values)


def test_the_kind_may_be_chosen_by_factor():
    model, _ = labelled()
    cr, tr = plot.factors(model, ["cr", "tr"], kind={"tr": "heatmap"})
    assert len(cr.images) == len(tr.images) == 1
    [one] = plot.factors(model, "nr", kind="lines")
    assert len(one.lines) == 2
    with pytest.raises(ValueError, match="kind must be"):
        plot.factors(model, kind="pie")
    with pytest.raises(ValueError, match="kind must have names of factors"):
        plot.factors(model, kind={"xr": "lines"})


def test_signs_are_equally_far_from_white():
    model, _ = labelled()
    image = plot.factors(model, "cr")[0].images[0]
    assert image.norm.vmin == -image.norm.vmax == -np.abs(model.factors_["cr"].to_numpy()).max()
    assert plot.factors(model, "nr")[0].images[0].norm.vmin == 0


def test_latent_cells_go_across():
    X = np.random.default_rng(1).gamma(1, size=(9, 4, 5))
    model = fit(X, "na,abc,bj,kc->njk", {"a": 3, "b": 2, "c": 2}, ())
    na, core, bj, kc = plot.factors(model)
    assert [ax.get_ylabel() for ax in (na, core, bj, kc)] == ["n", "a", "j", "k"]
    assert core.get_xlabel() == "b, c"
    core.figure.canvas.draw()
    assert [text.get_text() for text in core.get_xticklabels()] == ["0, 0", "0, 1", "1, 0", "1, 1"]
    assert_allclose(bj.images[0].get_array(), model.factors_["bj"].T)
    assert_allclose(core.images[0].get_array(), model.factors_["abc"].reshape(3, 4))


def test_events_of_a_convolution_are_lines():
    X = np.random.default_rng(2).gamma(1, size=(40, 3))
    model = fit(X, "(t-d)r,dcr->tc", {"r": 2, "d": 9}, ())
    events, waves = plot.factors(model)
    assert [len(ax.lines) for ax in (events, waves)] == [2, 6]
    assert waves.get_xlabel() == "d"


def test_long_axes_are_drawn_as_means():
    X = np.random.default_rng(3).gamma(1, size=(2500, 2, 2))
    model = fit(X, CP, 1, ())
    ax = plot.factors(model, "nr", kind="heatmap")[0]
    drawn = ax.images[0].get_array()
    assert drawn.shape == (1000, 1)
    assert_allclose(drawn.mean(), model.factors_["nr"].mean(), rtol=0.01)
    assert ax.images[0].get_extent()[2:] == [2499.5, -0.5]


def test_many_factors_go_to_more_rows_of_panels():
    X = np.random.default_rng(4).gamma(1, size=(9, 8))
    model = fit(X, "nk,kt + n,t + nq,qt -> nt", {"k": 3, "q": 2}, ())
    panels = plot.factors(model)
    assert len(panels) == 6
    panels[0].figure.canvas.draw()
    heights = [ax.get_position().y0 for ax in panels]
    assert min(heights[:4]) > max(heights[4:])


@pytest.mark.parametrize("kind", [SkellamSNTF, BayesianSkellamSNTF])
def test_convergence_is_that_of_the_objective(kind):
    model, _ = labelled(kind)
    ax = plot.convergence(model)
    objective = "objective" if kind is SkellamSNTF else "lower bound"
    assert ax.get_ylabel() == f"{objective}: distance from its end"
    assert ax.get_title().startswith("converged after")


def test_reconstruction_is_of_one_tensor():
    random = np.random.default_rng(5)
    X = {"a": random.gamma(1, size=(9, 4)), "b": random.gamma(1, size=(9, 3))}
    X["b"][0, 0] = np.nan
    model = fit(X, {"a": "nr,jr->nj", "b": "nr,mr->nm"}, 2, ())
    expected = model.inverse_transform(model.transform(X))
    for name, options in (("a", {}), ("b", {"tensor": "b"})):
        [points] = plot.reconstruction(model, X, **options).lines[:1]
        seen = ~np.isnan(X[name])
        assert_allclose(points.get_xdata(), X[name][seen])
        assert_allclose(points.get_ydata(), expected[name][seen])
    with pytest.raises(ValueError, match="tensor must be a tensor of X"):
        plot.reconstruction(model, {"a": X["a"]}, tensor="b")


@pytest.mark.parametrize("function", [plot.components, plot.activations, plot.clusters])
def test_what_is_for_matrices_says_what_is_for_tensors(function):
    with pytest.raises(ValueError, match=r"SkellamSNTF; plot\.factors draws factors of tensors"):
        function(labelled()[0])


def test_intervals_of_a_factor():
    model = labelled(BayesianSkellamSNTF)[0]
    lower, upper = model.interval(0.8)["tr"]
    ax = plot.intervals(model, factor="tr", component=1, level=0.8)
    assert ax.get_title() == "tr, r 1: means and 80% intervals"
    drawn = ax.collections[0].get_segments()
    assert_allclose([part[0][0] for part in drawn], lower[1], rtol=1e-6)
    assert_allclose([part[1][0] for part in drawn], upper[1], rtol=1e-6)
    assert lower.index.equals(model.factors_["tr"].index)
    ax = plot.intervals(model, factor="tr", max_features=5)
    assert ax.get_ylabel() == "time (the 5 largest of 20)"
    with pytest.raises(ValueError, match="factor must be one of 'nr', 'cr', 'tr'; found None"):
        plot.intervals(model)
    with pytest.raises(ValueError, match=r"plot\.factors draws factors of tensors"):
        plot.intervals(labelled()[0], factor="tr")


def test_dates_are_places_on_the_axis():
    days = pd.date_range("2026-01-01", periods=30)
    X = pd.DataFrame(np.random.default_rng(6).gamma(1, size=(10, 30)), columns=days)
    model = fit(X, "nr,rt->nt", 2, ())
    ax = plot.factors(model, "rt")[0]
    assert_array_equal(ax.lines[0].get_xdata(), days.to_numpy())
    ax.figure.canvas.draw()
