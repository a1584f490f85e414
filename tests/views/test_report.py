"""report: one sound page that nothing breaks, and numbers that are those of the model."""

import base64
import hashlib
import inspect
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pages import HOSTILE, LABELS, I, J, K, X, draw, fit, named_report
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

import seminmf
from seminmf import (
    BayesianSkellamSNMF,
    EuclideanSNMF,
    PriorLearner,
    SkellamSNMF,
    bootstrap,
    sample_skellam_snmf,
)
from seminmf._views.markup import Markup, element, verbatim
from seminmf.report import report
from seminmf.report.page.wording import count, number, percent, shortened

pytestmark = pytest.mark.filterwarnings("ignore:No convergence", "ignore:.*no observed cell")

ESTIMATORS = [SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF]
MEBIBYTE = 2**20
VOID = {"meta", "col", "br", "img", "link", "input", "hr"}


# --- reading a page -------------------------------------------------------------------------------


class Node:
    """An element with its attributes, children and text."""

    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children = []

    def all(self, tag=None, **attributes):
        """All elements below that have the tag and attributes; `class_` is one of the classes."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                found += [child] if child._matches(tag, attributes) else []
                found += child.all(tag, **attributes)
        return found

    def one(self, tag=None, **attributes):
        (found,) = self.all(tag, **attributes)
        return found

    def _matches(self, tag, attributes):
        if tag and self.tag != tag:
            return False
        for name, value in attributes.items():
            own = self.attributes.get(name.rstrip("_"))
            if own is None or (value not in own.split() if name == "class_" else value != own):
                return False
        return True

    @property
    def text(self):
        return "".join(c.text if isinstance(c, Node) else c for c in self.children)

    @property
    def rows(self):
        """Texts of a table's body."""
        return [[cell.text for cell in row.children] for row in self.one("tbody").children]


class Reader(HTMLParser):
    """Builds the tree, and refuses what is not nested."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.root = self.here = Node("", {}, None)
        self.feed(html)
        self.close()
        assert self.here is self.root, f"{self.here.tag} is not closed"

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"an attribute twice in {tag}"
        node = Node(tag, {name: value or "" for name, value in attributes}, self.here)
        self.here.children.append(node)
        if tag not in VOID:
            self.here = node

    def handle_endtag(self, tag):
        assert tag == self.here.tag, f"{self.here.tag} is closed by {tag}"
        self.here = self.here.parent

    def handle_data(self, data):
        self.here.children.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment")

    def unknown_decl(self, data):
        raise AssertionError("a declaration")


def read(html):
    return Reader(html).root


def section(page, place):
    return page.one("section", id=place)


def table(page, place, caption):
    """Rows of the table with this caption."""
    (found,) = [t for t in section(page, place).all("table") if t.one("caption").text == caption]
    return found


def value(text):
    """A number as it is written on the page."""
    return float(text.replace("−", "-").replace(",", "").rstrip("%")) / (100 if "%" in text else 1)


def concerns(page):
    return [title.text for title in section(page, "look").all("h3")]


# --- models ------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda estimator: estimator.__name__)
def model(request):
    return fit(request.param)


@pytest.fixture(scope="module")
def page(model):
    return read(report(model, X, labels=LABELS))


def changed(model, **attributes):
    """The model once more, with other attributes."""
    copy = clone(model)
    vars(copy).update(vars(model))
    vars(copy).update(attributes)
    return copy


def approximation(model, data=X):
    return np.asarray(model.transform(data), dtype=float) @ model.components_.astype(float)


# --- the page is sound ----------------------------------------------------------------------------


def test_the_page_is_well_formed(page):
    (html,) = [child for child in page.children if isinstance(child, Node)]
    assert html.attributes["lang"] == "en"
    assert [child.tag for child in html.children] == ["head", "body"]
    ids = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in page.all():
        if "aria-labelledby" in node.attributes:
            assert node.attributes["aria-labelledby"] in ids
    assert [link.attributes["href"][1:] for link in page.one("nav").all("a")] == [
        each.attributes["id"] for each in page.all("section")
    ]
    assert len(page.all("h1")) == 1
    for each in page.all("section"):
        assert each.children[0].tag == "h2"


def test_headings_leave_no_level_out(page):
    levels = [int(node.tag[1]) for node in page.all() if re.fullmatch("h[1-6]", node.tag)]
    assert levels[0] == 1
    assert max(np.diff(levels)) == 1


def test_nothing_comes_from_elsewhere(page):
    for node in page.all():
        for name, content in node.attributes.items():
            assert name not in ("src", "srcset", "style", "action", "data", "background")
            assert not name.startswith("on")
            assert name != "href" or content.startswith("#")
    assert Counter(node.tag for node in page.all())["script"] == 1
    assert not {node.tag for node in page.all()} & {"link", "iframe", "object", "img", "base"}
    assert not re.search(r"url\(|@import|@font-face", page.one("style").text)
    assert not re.search(r"fetch|XMLHttp|import\(|innerHTML|eval", page.one("script").text)


def test_policy_allows_the_own_style_and_script_alone(page):
    head = page.one("head")
    tags = [node.tag for node in head.children]
    policy = head.one("meta", **{"http-equiv": "Content-Security-Policy"})
    assert head.children.index(policy) < tags.index("style")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.attributes["content"].split(";"))
    assert rules["default-src"] == "'none'"
    for rule, tag in (("script-src", "script"), ("style-src", "style")):
        digest = hashlib.sha256(page.one(tag).text.encode()).digest()
        assert rules[rule] == f"'sha256-{base64.b64encode(digest).decode()}'"


def test_no_data_in_the_script():
    first, second = (read(report(fit(SkellamSNMF, data), data)) for data in (X, draw(1)[0]))
    assert first.one("script").text == second.one("script").text
    assert first.text != second.text


def test_what_is_no_number_is_not_shown(page):
    for node in page.all():
        if node.tag not in ("style", "script"):
            for text in [
                *node.attributes.values(),
                *(c for c in node.children if isinstance(c, str)),
            ]:
                assert not re.search(r"\b(nan|inf|None)\b", text), text


def test_the_same_page_each_time(model):
    assert report(model, X, labels=LABELS) == report(model, X, labels=LABELS)


# --- names are text of others ---------------------------------------------------------------------


def structure(page):
    """Elements and names of attributes. Long names have a hint: that is no difference."""
    return [(node.tag, sorted(set(node.attributes) - {"title"})) for node in page.all()]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_change_nothing(name):
    html = named_report(name)
    html.encode("utf-8")
    page = read(html)
    harmless = re.sub(r"\S", "h", name)
    assert structure(page) == structure(read(named_report(harmless)))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)
    assert not re.search("x{201}", html)


def test_hostile_names_are_shown_as_they_are():
    names = [name for name in HOSTILE if name.isprintable() and 0 < len(name) < 25]
    assert len(names) == 5
    for name in names:
        page = read(named_report(name))
        assert page.one("h1").text == name
        assert page.one("title").text == name
        assert name in [row[0] for row in table_of_labels(page).rows]


def table_of_labels(page):
    return section(page, "clusters").one("table")


def test_names_without_text_say_so():
    page = read(report(fit(SkellamSNMF), X, sample_names=[""] * J))
    assert "(empty)" in section(page, "examples").text


def test_elements_escape_text_and_attributes():
    text = "<b a='1'>\"&"
    built = element("p", text, [element("i", text)], title=text, hidden=True, lang=None)
    node = read(built).one("p")
    assert node.attributes == {"title": text, "hidden": ""}
    assert node.text == 2 * text
    assert [child.tag for child in node.children[1:]] == ["i"]


def test_text_joined_to_finished_html_is_escaped_again():
    joined = element("b", "x") + "<script>"
    assert not isinstance(joined, Markup)
    assert "<script>" not in element("p", joined)


@pytest.mark.parametrize("target", ["javascript:alert(1)", "https://example.org", "data:,", ""])
def test_links_lead_to_the_page_alone(target):
    with pytest.raises(ValueError, match="href must lead to a place on the page"):
        element("a", "x", href=target)


def test_scripts_cannot_be_ended_early():
    with pytest.raises(ValueError, match="script must not hold"):
        verbatim("script", "x = '</script>'")


def test_finished_html_is_made_in_one_place():
    folder = Path(seminmf.__file__).parent
    made = [path.name for path in folder.rglob("*.py") if "Markup(" in path.read_text("utf-8")]
    assert made == ["markup.py"]


# --- numbers --------------------------------------------------------------------------------------


def shares_of(model):
    sizes = np.array(
        [
            np.abs(np.outer(a, c)).sum()
            for a, c in zip(model.activations_.T, model.components_, strict=True)
        ]
    )
    return sizes / sizes.sum()


def test_components_by_share(model, page):
    found = table(page, "components", "Components by share")
    share = shares_of(model)
    order = np.argsort(-share)
    assert [int(row[0]) for row in found.rows] == order.tolist()
    keys = np.array(
        [
            [float(c.attributes.get("data-key", "nan")) for c in row.children]
            for row in found.one("tbody").children
        ]
    )
    assert_allclose(keys[:, 1], share[order], rtol=1e-6)
    clusters = model.fit_predict(X) if not model.converged_ else model.predict(X)
    assert_allclose(keys[:, 2], model.r2_drop_[order], rtol=1e-6)
    assert keys[:, 3].tolist() == np.bincount(clusters, minlength=K)[order].tolist()
    assert_allclose(keys[:, 4], model.amounts_.mean(axis=0)[order], rtol=1e-6)
    components = model.components_.astype(float)
    positive = np.maximum(components, 0).sum(axis=1) / np.abs(components).sum(axis=1)
    assert_allclose(keys[:, 5], positive[order], rtol=1e-6)
    for row, k in zip(found.rows, order, strict=True):
        strongest = np.argsort(-np.abs(components[k]))[:4]
        signed = [("+" if components[k, i] > 0 else "−") + X.columns[i] for i in strongest]
        assert row[6] == "".join(signed)


def test_bars_are_what_a_component_adds_to_the_mean_sample(model, page):
    for k in range(K):
        added = model.components_[k] * model.activations_[:, k].mean()
        rows = table(page, "components", f"Strongest features of component {k}").rows
        order = np.argsort(-added)
        assert [row[0] for row in rows] == [X.columns[i] for i in order]
        assert_allclose([value(row[2]) for row in rows], added[order], rtol=6e-3, atol=1e-9)


def test_whiskers_are_posterior_intervals():
    model = fit(BayesianSkellamSNMF)
    page = read(report(model, X))
    interval = model.interval(0.9).components
    for k in range(K):
        rows = table(page, "components", f"Strongest features of component {k}").one("tbody")
        mean = model.activations_[:, k].mean()
        for row in rows.children:
            i = X.columns.get_loc(row.children[0].text)
            ends = re.search("90% interval (.*) to (.*)", row.attributes["data-tip"]).groups()
            expected = [interval.lower[k, i] * mean, interval.upper[k, i] * mean]
            assert_allclose([value(end) for end in ends], expected, rtol=6e-3)
            bar, whisker = row.one("rect"), row.all("line", class_="whisker")[0]
            left, right = (float(whisker.attributes[end]) for end in ("x1", "x2"))
            start = float(bar.attributes["x"])
            negative = row.children[2].text.startswith("−")
            tip = start if negative else start + float(bar.attributes["width"])
            assert left <= tip <= right
    assert not read(report(fit(SkellamSNMF), X)).all("line", class_="whisker")


@pytest.mark.parametrize("estimator", [SkellamSNMF, EuclideanSNMF])
def test_a_bootstrap_is_shown(estimator):
    model = fit(estimator)
    found = bootstrap(model, X, n_draws=6, random_state=0)
    page = read(report(model, X, bootstrap=found))
    assert page.all("line", class_="whisker")
    rows = table(page, "components", "Components by share").rows
    headings = [cell.text for cell in table(page, "components", "Components by share").all("th")]
    place = next(i for i, text in enumerate(headings) if text.startswith("Came back"))
    order = np.argsort(-shares_of(model), kind="stable")
    expected = [f"{100 * found.n_returned[k] / 6:.1f}%" for k in order]
    assert [row[place] for row in rows] == expected
    with pytest.raises(ValueError, match=r"bootstrap must be what seminmf.bootstrap returns"):
        report(model, X, bootstrap=model)


def test_heat_map(model, page):
    found = table(page, "components", "What each component adds to the mean sample")
    order = np.argsort(-shares_of(model))
    added = model.components_[order] * model.activations_.mean(axis=0)[order, None]
    assert [int(row[0]) for row in found.rows] == order.tolist()
    names = [cell.attributes["data-name"] for cell in found.one("thead").all("th")]
    assert names == X.columns.tolist()
    shown = [[value(text) for text in row[1:]] for row in found.rows]
    assert_allclose(shown, added, rtol=6e-2, atol=1e-9)
    for row, values in zip(found.one("tbody").children, added, strict=True):
        levels = [cell.attributes.get("class", "p0") for cell in row.children[1:]]
        signed = [int(level[1]) * (1 if level[0] == "p" else -1) for level in levels]
        assert_allclose(signed, 8 * values / np.abs(values).max(), atol=0.501)


def test_nearest_samples(model, page):
    sizes = np.asarray(model.transform(X)) * np.abs(model.components_).sum(axis=1)
    parts = sizes / sizes.sum(axis=1, keepdims=True)
    for card in section(page, "examples").all("article"):
        k = int(card.one("h3").text.split()[1])
        items = [[part.text for part in item.children] for item in card.all("li")]
        nearest = np.argsort(-parts[:, k], kind="stable")[:5]
        assert_allclose([value(share) for _, share in items], parts[nearest, k], atol=6e-4)
        first = parts[X.index.get_loc(items[0][0]), k]
        assert first == parts[nearest[0], k]  # samples may have this component alone


def test_residuals(model, page):
    errors = X.to_numpy() - approximation(model)
    figures = [strong.text for strong in section(page, "residuals").all("strong")]
    assert value(figures[0]) == pytest.approx(model.r2(X), abs=6e-4)
    tiles = {
        tile.children[0].text: tile.children[1].text
        for tile in page.one("dl", class_="tiles").all("div")
    }
    assert value(tiles["R²"]) == pytest.approx(model.r2(X), abs=6e-4)
    assert value(figures[1]) == pytest.approx(np.sqrt(np.nanmean(errors**2)), rel=6e-3)
    assert f"{int(np.sum(~np.isnan(errors)))} observed cells" in section(page, "residuals").text
    features = table(page, "residuals", "Least explained features").rows
    by_feature = 1 - np.nansum(errors**2, axis=0) / np.nansum(X.to_numpy() ** 2, axis=0)
    assert [row[0] for row in features] == [X.columns[i] for i in np.argsort(by_feature)]
    samples = table(page, "residuals", "Samples with the largest RMSE").rows
    by_sample = np.sqrt(np.nanmean(errors**2, axis=1))
    worst = np.argsort(-by_sample)[:10]
    assert [row[0] for row in samples] == [X.index[j] for j in worst]
    assert_allclose([value(row[2]) for row in samples], by_sample[worst], rtol=6e-3)


def test_histogram_counts_each_cell_once(model, page):
    bars = section(page, "residuals").one("figure").all("rect")
    inside = sum(int(bar.attributes["data-tip"].split()[-2].replace(",", "")) for bar in bars)
    caption = section(page, "residuals").one("figcaption").text
    outside = re.search(r"(\d+) cells? further out", caption)
    assert inside + int(outside[1] if outside else 0) == int(X.notna().to_numpy().sum())


def test_gaps_are_filled_as_impute_does(model, page):
    text = section(page, "gaps").text
    n_gaps = int(X.isna().to_numpy().sum())
    assert f"{n_gaps} of {X.size} cells ({n_gaps / X.size:.1%}) are gaps" in text
    found = table(page, "gaps", "Gaps and what is predicted for them")
    bayesian = isinstance(model, BayesianSkellamSNMF)
    filled = model.impute(X, return_interval=True) if bayesian else [model.impute(X)]
    assert len(found.rows) == min(n_gaps, 10)
    for row in found.rows:
        assert np.isnan(X.loc[row[0], row[1]])
        expected = [float(each.loc[row[0], row[1]]) for each in filled]
        assert_allclose([value(text) for text in row[2:]], expected, rtol=6e-3, atol=1e-9)
    if bayesian:
        widths = (filled[2] - filled[1]).to_numpy()
        shown = [widths[X.index.get_loc(row[0]), X.columns.get_loc(row[1])] for row in found.rows]
        assert_allclose(shown, np.sort(widths.ravel())[::-1][: len(shown)])


def test_clusters_against_labels(model, page):
    clusters = model.predict(X)
    names = np.unique(LABELS)
    counts = {
        (name, k): int(np.sum((name == LABELS) & (clusters == k)))
        for name in names
        for k in range(K)
    }
    best = max(
        sum(counts[name, k] for name, k in zip(names, order, strict=True))
        for order in permutations(range(K))
    )
    figures = [strong.text for strong in section(page, "clusters").all("strong")]
    assert value(figures[0]) == pytest.approx(best / J, abs=6e-4)
    assert value(figures[1]) == pytest.approx(adjusted_rand_score(LABELS, clusters), abs=6e-4)
    found = table_of_labels(page)
    columns = [int(cell.text.split()[1]) for cell in found.one("thead").all("th")]
    for row in found.rows:
        assert [int(text) for text in row[1:]] == [counts[row[0], k] for k in columns]
    assert sum(int(row[1 + n]) for n, row in enumerate(found.rows)) == best


def test_labels_that_are_missing_do_not_count():
    model = fit(SkellamSNMF)
    labels = LABELS.astype(object)
    labels[:5], labels[5:7] = None, np.nan
    text = section(read(report(model, X, labels=labels)), "clusters").text
    assert "7 samples have no label" in text
    assert f"of {J - 7} samples" in text


def test_many_labels():
    page = read(report(fit(SkellamSNMF), X, labels=np.arange(J)))
    n_shown = len(table_of_labels(page).rows)
    assert 10 < n_shown < J
    assert f"{n_shown} of {J} labels" in section(page, "clusters").text


def test_settings_that_differ_from_the_defaults():
    shape = np.full((2, K, I), 0.9)
    model = fit(SkellamSNMF, tol=1e-3, atom_shape_prior=shape, max_iter=77, solver="newton")
    facts = {
        div.children[0].text: div.children[1]
        for div in section(read(report(model)), "fit").all("div")
    }
    settings = [code.text for code in facts["Other settings"].all("code")]
    assert settings == [
        "atom_shape_prior = array of shape (2, 3, 6)",
        "max_iter = 77",
        "tol = 0.001",
    ]
    assert facts["Seed"].text == "0"
    assert facts["Estimator"].text == "SkellamSNMF"
    assert facts["Solver"].text == "EM, in the place of Newton's method"
    assert facts["Fitted to"].text == "60 samples × 6 features"


def test_line_of_convergence(model, page):
    history = model.lower_bounds_ if hasattr(model, "lower_bounds_") else model.objectives_
    tips = [mark.attributes["data-tip"] for mark in section(page, "convergence").all("circle")]
    if getattr(model, "posterior_", None) == "correlated":
        assert not tips and "The fit has draws that have" in section(page, "convergence").text
        return
    places = [int(re.search(r"iteration ([\d,]+):", tip)[1].replace(",", "")) for tip in tips]
    assert places[0] == 0
    assert_allclose(
        [value(tip.split(": ")[1]) for tip in tips], (history[-1] - history)[places], rtol=6e-3
    )


# --- kinds of input -------------------------------------------------------------------------------


def places(page):
    return [each.attributes["id"] for each in page.all("section")]


def test_without_data(model):
    page = read(report(model))
    assert places(page) == ["look", "fit", "convergence", "components", "examples"]
    assert "residuals and gaps are left out" in section(page, "fit").text
    assert re.search(r"sample \d", section(page, "examples").text)
    with_labels = read(report(model, labels=LABELS))
    assert places(with_labels)[-1] == "clusters"


def test_other_data_than_those_of_the_fit(model):
    other, _ = draw(seed=5, n_samples=17)
    other_labels = np.repeat(["a", "b"], [9, 8])
    page = read(report(model, other, labels=other_labels))
    assert sum(int(text) for row in table_of_labels(page).rows for text in row[1:]) == 17
    rand = section(page, "clusters").all("strong")[1].text
    expected = adjusted_rand_score(other_labels, model.predict(other))
    assert value(rand) == pytest.approx(expected, abs=6e-4)
    errors = other.to_numpy() - approximation(model, other)
    figures = [strong.text for strong in section(page, "residuals").all("strong")]
    assert value(figures[1]) == pytest.approx(np.sqrt(np.nanmean(errors**2)), rel=6e-3)
    assert "17 samples" in section(page, "fit").text
    assert "60 samples × 6 features" in section(page, "fit").text


def test_no_gaps(model):
    page = read(report(model, X.fillna(0.0)))
    assert section(page, "gaps").one("p").text == "The data have no gaps."


def test_arrays_have_no_names():
    page = read(report(fit(SkellamSNMF, X.to_numpy()), X.to_numpy()))
    assert "feature 0" in page.text
    assert re.search(r"sample \d", section(page, "examples").text)


def test_sample_names_come_before_the_index():
    page = read(report(fit(SkellamSNMF), X, sample_names=[f"mouse {j}" for j in range(J)]))
    assert "mouse" in section(page, "examples").text
    assert "row" not in section(page, "examples").text


def test_an_index_that_counts_is_no_name():
    page = read(report(fit(SkellamSNMF), X.reset_index(drop=True)))
    assert re.search(r"sample \d+", section(page, "examples").text)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_float32(estimator):
    data = X.astype(np.float32)
    model = fit(estimator, data)
    page = read(report(model, data, labels=LABELS))
    errors = data.to_numpy(float) - approximation(model, data)
    rmse = section(page, "residuals").all("strong")[1].text
    assert value(rmse) == pytest.approx(np.sqrt(np.nanmean(errors**2)), rel=6e-3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_component(estimator):
    page = read(report(fit(estimator, n_components=1), X, labels=LABELS))
    assert page.one("h1").text == f"{estimator.__name__} with 1 component"
    assert [row[1] for row in table(page, "components", "Components by share").rows] == ["100.0%"]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("unit", [1e-250, 1e200])
def test_extreme_units(estimator, unit):
    data = X * unit
    page = read(report(fit(estimator, data, n_components=2), data))
    figures = [strong.text for strong in section(page, "residuals").all("strong")]
    ordinary = read(report(fit(estimator, X, n_components=2), X))
    plain = [strong.text for strong in section(ordinary, "residuals").all("strong")]
    assert value(figures[0]) == pytest.approx(value(plain[0]), abs=0.02)
    assert value(figures[1]) / unit == pytest.approx(value(plain[1]), rel=0.05)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_nothing_to_see(estimator):
    zeros = np.zeros((8, 3))
    page = read(report(fit(estimator, zeros, n_components=2), zeros))
    assert section(page, "residuals").all("strong")[0].text == "–"
    if estimator is not BayesianSkellamSNMF:  # its means are never 0
        assert "All residuals are 0." in section(page, "residuals").text


def test_values_are_in_the_unit_of_the_data(model):
    scale = np.array([1.0, 10.0, 1e3, 1e-3, 5.0, 2.0])
    data = X * scale
    plain = read(report(model, X))
    page = read(report(model, data, feature_scale=scale))
    for k in range(K):
        caption = f"Strongest features of component {k}"
        shown, before = (
            {row[0]: value(row[2]) for row in table(each, "components", caption).rows}
            for each in (page, plain)
        )
        assert list(shown) == list(before)  # the bars are as long as they were
        for i, name in enumerate(X.columns):
            assert shown[name] == pytest.approx(before[name] * scale[i], rel=2e-2)
    errors = (X.to_numpy() - approximation(model)) * scale
    figures = [strong.text for strong in section(page, "residuals").all("strong")]
    assert value(figures[1]) == pytest.approx(np.sqrt(np.nanmean(errors**2)), rel=6e-3)
    assert figures[0] == section(plain, "residuals").all("strong")[0].text
    rows = table(page, "residuals", "Least explained features").rows
    for row in rows:
        i = X.columns.get_loc(row[0])
        assert value(row[2]) == pytest.approx(np.sqrt(np.nanmean(errors[:, i] ** 2)), rel=6e-3)
    filled = model.impute(X)
    for row in table(page, "gaps", "Gaps and what is predicted for them").rows:
        expected = filled.loc[row[0], row[1]] * scale[X.columns.get_loc(row[1])]
        assert value(row[2]) == pytest.approx(expected, rel=6e-3)
    assert "units of the features’ scales" in page.text
    assert "units of the features’ scales" not in plain.text


# --- concerns, exactly when there is one ----------------------------------------------------------


@pytest.fixture(scope="module")
def counts():
    data, _, _ = sample_skellam_snmf(200, 15, 3, activation_shape=0.5, missing=0.1, random_state=0)
    return data


@pytest.fixture(scope="module")
def sound(counts):
    return SkellamSNMF(3, likelihood="integer", n_init=2, random_state=0).fit(counts)


def test_nothing_is_wrong_with_a_sound_model(sound, counts):
    page = read(report(sound, counts))
    assert concerns(page) == []
    assert "No check of this report found anything amiss" in section(page, "look").text
    assert concerns(read(report(sound))) == []


@pytest.mark.parametrize(
    ("attributes", "title"),
    [
        ({"converged_": False, "stop_reason_": "max_iter"}, "The fit has not converged"),
        ({"converged_": False, "stop_reason_": "interrupted"}, "The fit was interrupted"),
        ({"stability_": 0.89, "n_init": 3}, "Other starts led elsewhere"),
    ],
)
def test_concerns_about_the_fit(sound, counts, attributes, title):
    assert concerns(read(report(changed(sound, **attributes), counts))) == [title]


def test_stable_starts_are_no_concern(sound):
    assert concerns(read(report(changed(sound, stability_=0.91, n_init=3)))) == []


@pytest.mark.parametrize(("share", "found"), [(0.009, True), (0.011, False)])
def test_concern_about_unused_components(sound, share, found):
    activations = sound.activations_.copy()
    sizes = activations.sum(axis=0) * np.abs(sound.components_).sum(axis=1)
    activations[:, 1] *= share / (1 - share) * (sizes[0] + sizes[2]) / sizes[1]
    page = read(report(changed(sound, activations_=activations)))
    assert concerns(page) == (["A component is hardly used"] if found else [])
    if found:
        assert "Component 1 has less than 1%" in section(page, "look").text


@pytest.mark.parametrize(("cosine", "found"), [(0.96, True), (0.94, False)])
def test_concern_about_equal_components(cosine, found):
    components = np.eye(K, I)
    components[2] = [cosine, 0, 0, np.sqrt(1 - cosine**2), 0, 0]
    model = changed(fit(EuclideanSNMF, n_init=2), _components_of_fit=components)
    model.activations_ = np.eye(K)[np.arange(J) % K]
    page = read(report(model))
    assert concerns(page) == (["Some components are nearly equal"] if found else [])
    if found:
        assert "The components 0 and 2 have a cosine above 0.95" in section(page, "look").text


def test_concern_about_one_start(sound, counts):
    """The other starts agree with the best, or were not made."""
    single = changed(sound, n_init=1, stability_=np.nan)
    page = read(report(single, counts))
    assert concerns(page) == ["Only one start was made"]
    assert "was not checked: n_init=1" in section(page, "look").text


@pytest.mark.parametrize(("r2", "found"), [(0.009, True), (-0.5, True), (0.011, False)])
def test_concern_about_what_is_explained(sound, counts, r2, found):
    titles = concerns(read(report(changed(sound, r2_=r2), counts)))
    assert titles == ([f"Next to nothing is explained: R² is {r2}"] if found else [])


def test_concern_about_empty_components(sound):
    activations = sound.activations_ * [1, 0, 1]
    assert concerns(read(report(changed(sound, activations_=activations)))) == [
        "Component 1 is empty"
    ]


@pytest.mark.parametrize(("part", "found"), [(0.92, True), (0.88, False)])
def test_concern_about_one_cluster(sound, part, found):
    amounts = np.where(np.arange(200) < round(200 * part), 0, 1 + np.arange(200) % 2)
    activations = np.eye(3)[amounts] / np.abs(sound.components_).sum(axis=1)
    activations[0] += 1e-1
    page = read(report(changed(sound, activations_=activations)))
    title = "Nearly all samples are in one cluster"
    assert concerns(page) == ([title] if found else [])
    if found:
        assert "Component 0 puts the largest amount into 92%" in section(page, "look").text


@pytest.mark.parametrize(("rest", "found"), [(0.1, True), (2.0, False)])
def test_concern_about_components_that_cancel(rest, found):
    """Two components are opposites of each other but for a rest."""
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=I), rest * rng.normal(size=(2, I))
    model = changed(fit(EuclideanSNMF, n_components=2, n_init=2))
    model._components_of_fit = np.array([common, -common]) + own
    model.activations_ = rng.uniform(1, 2, (J, 2))
    page = read(report(model))
    assert ("The components mostly cancel each other" in concerns(page)) == found


def test_concerns_hold_for_old_files():
    """What was not known when the file was written is no concern, and not shown."""
    model = changed(fit(SkellamSNMF, n_init=2), r2_=np.nan, r2_drop_=np.full(K, np.nan))
    page = read(report(model, X))
    assert not [title for title in concerns(page) if "explained" in title]
    assert "nan" not in section(page, "components").text


def test_concern_about_what_was_never_observed(sound, counts):
    gappy = counts.copy()
    gappy[:, 4] = gappy[7] = np.nan
    page = read(report(sound, gappy))
    assert concerns(page) == ["Something was never observed"]
    assert "Feature “feature 4” and Sample “sample 7” have gaps only" in section(page, "look").text


def test_concern_about_one_feature(sound):
    title = "One feature outweighs the others"
    model = fit(EuclideanSNMF)
    assert title not in concerns(read(report(model, X)))
    larger = X.assign(**{"column 2": 100 * X["column 2"]})
    page = read(report(fit(EuclideanSNMF, larger), larger))
    assert title in concerns(page)
    assert "“column 2” holds" in section(page, "look").text
    scale = np.array([1.0, 1.0, 100.0, 1.0, 1.0, 1.0])
    assert title not in concerns(read(report(model, larger, feature_scale=scale)))


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF])
def test_concern_about_integers(estimator, counts):
    title = "The data are integers"
    assert title in concerns(read(report(fit(estimator, counts, likelihood="real"), counts)))
    assert title not in concerns(read(report(fit(estimator, counts, likelihood="integer"), counts)))
    assert title not in concerns(read(report(fit(estimator), X)))
    signs = np.sign(X)
    assert title not in concerns(read(report(fit(estimator, signs), signs)))


def test_concern_about_counts_that_vary_more(sound, counts):
    title = "The counts vary more than the model allows"
    model = SkellamSNMF(3, likelihood="integer", n_init=2, random_state=0).fit(10 * counts)
    assert concerns(read(report(model, 10 * counts))) == [title]


@pytest.mark.parametrize("factor", [0.01, 100.0])
def test_concern_about_the_noise_level(factor):
    title = "The noise does not match these data"
    data, _ = draw(n_samples=100, n_features=15)
    model = fit(BayesianSkellamSNMF, data)
    assert title not in concerns(read(report(model, data)))
    other = changed(
        model, dispersion_=model.dispersion_ * factor, _noise_scale=model._noise_scale * factor**0.5
    )
    other.transform = model.transform
    page = read(report(other, data))
    assert title in concerns(page)
    width = "wide" if factor > 1 else "narrow"
    assert f"Intervals are too {width}." in section(page, "look").text
    times = re.search("residuals are ([0-9.,]+) times", section(page, "look").text)
    assert (value(times[1]) > 1) == (factor < 1)


def test_concern_about_too_many_parameters():
    title = "More numbers are fitted than observed"
    assert title in concerns(read(report(fit(SkellamSNMF, n_components=6, max_iter=5), X)))
    assert title in concerns(read(report(fit(SkellamSNMF, n_components=6, max_iter=5))))
    assert title not in concerns(read(report(fit(SkellamSNMF), X)))


# --- errors ---------------------------------------------------------------------------------------


def test_other_objects_are_refused():
    learner = PriorLearner(BayesianSkellamSNMF(2))
    with pytest.raises(ValueError, match="found a PriorLearner, whose attribute last_ is one"):
        report(learner)
    with pytest.raises(ValueError, match=r"model must be a fitted SkellamSNMF .* found a str"):
        report("model")
    with pytest.raises(NotFittedError):
        report(SkellamSNMF())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": LABELS[:-1]}, r"labels must have one entry .* 60 samples; found .*59"),
        ({"labels": LABELS[:, None]}, r"labels must have one entry .* found .*\(60, 1\)"),
        ({"labels": [None] * J}, "labels must name at least one class"),
        ({"sample_names": "abc"}, r"sample_names must have one entry .* found .*\(\)"),
        ({"feature_scale": [1.0, 2.0]}, r"feature_scale must be 6 numbers .* found .*\(2,\)"),
        ({"feature_scale": [1, 1, 1, 0, 1, 1]}, "feature_scale must be .* above 0.* found 0"),
        ({"feature_scale": [1, 1, 1, np.nan, 1, 1]}, "feature_scale must be .* found nan"),
        ({"feature_scale": "abc"}, "feature_scale must be .* found 'abc'"),
    ],
)
def test_misuse(options, message):
    with pytest.raises(ValueError, match=message):
        report(fit(SkellamSNMF, tol=1.0), X, **options)


def test_data_with_other_features_are_refused():
    with pytest.raises(ValueError, match="features"):
        report(fit(SkellamSNMF, X.to_numpy(), tol=1.0), np.ones((4, I + 1)))


# --- size -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "n_samples", "n_features", "n_components"),
    [(SkellamSNMF, 14_500, 9, 5), (BayesianSkellamSNMF, 60, 300, 30)],
)
def test_pages_have_a_bounded_size(estimator, n_samples, n_features, n_components):
    random = np.random.default_rng(0)
    data = pd.DataFrame(
        random.normal(size=(n_samples, n_features)),
        columns=[f"{'long name ' * 20}{i}" for i in range(n_features)],
        index=[f"{'long name ' * 20}{j}" for j in range(n_samples)],
    )
    data = data.mask(random.random(data.shape) < 0.05)
    model = fit(estimator, data, n_components, max_iter=2)
    html = report(model, data, labels=np.arange(n_samples))
    assert len(html.encode()) < 3 * MEBIBYTE
    assert len(table(read(html), "components", "Components by share").rows) == n_components


def test_of_very_many_components_and_features_the_first_are_shown():
    random = np.random.default_rng(0)
    model = changed(
        fit(EuclideanSNMF, tol=1.0),
        _components_of_fit=random.normal(size=(100, 5000)),
        feature_scale_=np.ones(5000),
        activations_=random.gamma(1.0, size=(40, 100)),
        r2_drop_=np.zeros(100),
        n_features_in_=5000,
        feature_names_in_=np.array([f"{'long name ' * 20}{i}" for i in range(5000)]),
    )
    html = report(model)
    assert len(html.encode()) < 3 * MEBIBYTE
    page = section(read(html), "components")
    n_components, n_columns = np.shape(page.one("table", class_="heat").rows)
    assert 10 < n_components < 100 and 100 < n_columns < 5000
    assert f"The {n_components} largest are shown." in page.text
    # One column has the component's number.
    assert f"Of 5,000 features the {n_columns - 1} that stand out most." in page.text
    n_hidden = int(page.one("summary").text.removesuffix(" more components"))
    assert 0 < n_hidden == len(page.one("details").all("article")) < n_components


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number_", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1234.5678, "1,235"),
        (-12.345, "−12.3"),
        (0.00123456, "0.00123"),
        (1.23456e-7, "1.23e−7"),
        (-6.5e12, "−6.50e12"),
        (float("nan"), "–"),
        (float("-inf"), "−∞"),
        (np.float32(0.5), "0.500"),
    ],
)
def test_numbers(number_, text):
    assert number(number_) == text


def test_shares_and_counts():
    assert [percent(share) for share in (0, 1e-5, 0.1234, 1, np.nan)] == [
        "0%",
        "<0.1%",
        "12.3%",
        "100.0%",
        "–",
    ]
    assert [count(1, "gap"), count(1200, "gap"), count(0)] == ["1 gap", "1,200 gaps", "0"]


def test_long_names_keep_both_ends():
    assert shortened("short", 5) == "short"
    assert shortened("abcdefghijklmnop", 7) == "abc…nop"
    assert len(shortened("x" * 1000, 20)) == 20


def test_signature():
    parameters = inspect.signature(report).parameters
    assert list(parameters) == [
        "model",
        "X",
        "title",
        "source",
        "labels",
        "sample_names",
        "feature_scale",
        "bootstrap",
    ]
