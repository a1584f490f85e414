"""The report of tensor models: what it says is true, and names are text of others."""

import re
import warnings
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from pages import HOSTILE
from scipy import sparse
from tensors import CASES

from seminmf import BayesianSkellamSNTF, SkellamSNTF, plot
from seminmf.report import report

xarray = pytest.importorskip("xarray")

CP = "nr,cr,tr->nct"
COUPLED = {"ratings": "nr,jr,kr->njk", "profile": "nr,mr->nm"}


class Reader(HTMLParser):
    """Tags with their attributes, texts, and whether everything that is opened is closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)


def fit(X, model, n_components, signed, kind=SkellamSNTF, **options):
    options = {"tol": 1e-2, "n_init": 1, "random_state": 0, "n_jobs": 1} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(model, n_components, signed=signed, **options).fit(X)


def recording(name="C"):
    random = np.random.default_rng(0)
    trials, courses = random.gamma(1, size=(12, 2)), random.gamma(1, size=(20, 2))
    values = np.einsum(
        "nr,cr,tr->nct", trials, random.normal(size=(3, 2)), courses
    ) + 0.1 * random.normal(size=(12, 3, 20))
    values[random.random(values.shape) < 0.1] = np.nan
    coords = {"channel": [f"{name} {c}" for c in range(3)], "ms": 10 * np.arange(20)}
    return xarray.DataArray(values, dims=("trial", "channel", "ms"), coords=coords)


@cache
def fitted(kind=SkellamSNTF):
    return fit(recording(), CP, 2, "cr", kind)


@cache
def page(kind=SkellamSNTF):
    return report(fitted(kind), recording(), source="simulated")


def sections(html):
    return re.findall(r'<section id="(\w+)"', html)


def test_sections():
    assert sections(page()) == [
        *("look", "fit", "convergence", "explained", "factors", "noise", "residuals", "gaps")
    ]
    without = report(fitted())
    assert sections(without) == ["look", "fit", "convergence", "explained", "factors", "noise"]


@pytest.mark.parametrize("kind", [SkellamSNTF, BayesianSkellamSNTF])
def test_numbers_are_those_of_the_model(kind):
    model, X, texts = fitted(kind), recording(), Reader(page(kind)).texts
    assert f"{model.r2_:.3f}" in texts
    assert all(f"{drop:.3f}".replace("-", "−") in texts for drop in model.r2_drop_["r"])
    gaps = int(np.isnan(X.values).sum())
    assert f"{gaps:,}" in texts
    assert f"{gaps / X.size:.1%}" in texts
    for name in model.factors_:
        assert name in texts
    assert "channel: signed, sizes sum to 1 over c for each r." in texts
    assert "trial: at least 0, in the unit of the data." in texts
    residuals = X.values - model.inverse_transform(model.transform(X)).values
    worst = np.sqrt(np.nanmean(residuals**2, axis=(0, 2))).max()
    assert f"{worst:.3g}" in texts


def test_a_heat_map_has_the_values_of_its_factor():
    html = page()
    [body] = re.findall(r"<caption>Factor cr: channel</caption>.*?<tbody>(.*?)</tbody>", html, re.S)
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in body.split("</tr>")[:-1]]
    found = [[float(text.replace("−", "-")) for text in row] for row in rows]
    np.testing.assert_allclose(found, fitted().factors_["cr"].T, rtol=0.06, atol=1e-3)


def test_times_are_lines():
    lines = [tag for tag in Reader(page()).tags if tag[1].get("class", "") == "curve line1"]
    assert len(lines) == 1
    assert len(lines[0][1]["points"].split()) == 20


def test_hostile_names_change_nothing():
    # Files and xarrays cannot hold half characters.
    names = [name.encode("utf-8", "replace").decode() for name in HOSTILE]

    def page_of(names):
        X = np.random.default_rng(3).gamma(1, size=(9, len(names), 4))
        X[0, :, 0] = np.nan
        X = xarray.DataArray(X, dims=("trial", names[0], "ms"), coords={names[0]: names})
        return report(fit(X, CP, 2, "cr"), X, title=names[1], source=names[2])

    html = page_of(names)
    html.encode("utf-8")
    harmless = page_of([re.sub(r"\S", "h", name) for name in names])

    def structure(page):
        return [(tag, sorted(set(own) - {"title"})) for tag, own in Reader(page).tags]

    assert structure(html) == structure(harmless)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)
    assert not re.search("x{201}", html)
    assert names[1] in Reader(html).texts


def test_nothing_comes_from_elsewhere():
    for tag, attributes in Reader(page()).tags:
        assert tag not in ("link", "iframe", "object", "img", "base")
        assert not set(attributes) & {"src", "srcset", "style", "action", "onclick", "onerror"}
        assert attributes.get("href", "#").startswith("#")


def test_coupled_tables_and_long_axes():
    random = np.random.default_rng(1)
    a, b, c, d = (random.gamma(1, size=(size, 2)) for size in (900, 5, 4, 3))
    X = {"ratings": np.einsum("nr,jr,kr->njk", a, b, c), "profile": a @ d.T}
    X["profile"][0, 0] = np.nan
    model = fit(X, COUPLED, 2, (), dispersion=0.0, tol=1e-1)
    html = report(model, X)
    texts = Reader(html).texts
    assert "profile: nr,mr->nm" in texts
    about = "n: at least 0, in the unit of the data; each column is the mean of 3 neighbours."
    assert about in texts
    assert {"900 n × 5 j × 4 k", "900 n × 3 m", "0 to 2"} <= set(texts)
    assert len(html) < 400_000
    assert "profile" not in sections(report(model, {"ratings": X["ratings"]}))


@pytest.mark.parametrize("name", CASES)
def test_all_models_are_explained_and_drawn(name):
    case = CASES[name]
    X = case.data("integer", True)
    model = SkellamSNTF(
        case.model, case.n_components, signed=case.signed, likelihood="integer", tol=0.1, n_jobs=1
    ).fit(X, factors=case.factors, frozen=case.frozen)
    texts = Reader(report(model, None if name == "tied" else X)).texts
    assert set(model.factors_) <= set(texts)
    for ax in plot.factors(model):
        ax.figure.canvas.draw()
    if name == "tied":  # as `transform` does
        with pytest.raises(ValueError, match="factors that belong to the samples"):
            report(model, X)


def test_stored_cells_alone_are_explained():
    random = np.random.default_rng(4)
    cells = np.where(random.random((12, 6)) < 0.6, random.poisson(3, size=(12, 6)) + 1.0, 0)
    X = sparse.csr_array(cells)
    model = fit(X, "nr,jr->nj", 2, ())
    assert f"{np.sum(cells == 0):,}" in Reader(report(model, X)).texts
    assert plot.reconstruction(model, X).get_title().startswith("R²")


def test_what_is_worth_a_look():
    X = recording()
    model = fit(X, CP, 2, "cr", max_iter=1, tol=0, dispersion=0.0)
    assert "The fit has not converged" in Reader(report(model)).texts
    noise = np.random.default_rng(2).normal(size=(30, 5, 6))
    model = fit(noise, CP, 1, "cr", dispersion=0.0, max_iter=0, tol=0)
    assert any(text.startswith("Next to nothing") for text in Reader(report(model)).texts)


def test_what_is_for_matrices_is_refused():
    with pytest.raises(ValueError, match="labels must be None for a tensor model"):
        report(fitted(), recording(), labels=["a"] * 12)
    with pytest.raises(ValueError, match="X must have 3 values of letter 'c', as in the fit"):
        report(fitted(), recording().values[:, :2])
