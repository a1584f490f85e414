"""A posterior for ArviZ, and estimators in a notebook."""

import html.parser
import re
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, sample_skellam_snmf
from seminmf._estimators.notebook import fitted_summary

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*ArviZ is undergoing.*:FutureWarning"),
]
X, _, _ = sample_skellam_snmf(30, 4, 3, random_state=0)


@pytest.fixture(scope="module")
def model():
    names = ["a", "b", "<script>", "δ"]
    return BayesianSkellamSNMF(3, random_state=0).fit(pd.DataFrame(X, columns=names))


def test_arviz_has_the_draws_of_sample(model):
    posterior = model.to_arviz(50, random_state=1).posterior
    activations, atoms = model.sample(50, 1)
    np.testing.assert_array_equal(posterior["activations"].to_numpy()[0], activations)
    np.testing.assert_array_equal(posterior["atoms"].to_numpy()[0], atoms)
    np.testing.assert_array_equal(posterior["components"].to_numpy()[0], atoms[:, 0] - atoms[:, 1])
    assert posterior["components"].dims == ("chain", "draw", "component", "feature")
    assert posterior["feature"].to_numpy().tolist() == ["a", "b", "<script>", "δ"]
    assert posterior["sign"].to_numpy().tolist() == ["positive", "negative"]
    positive = posterior["atoms"].sel(sign="positive", feature="b", component=2)
    np.testing.assert_array_equal(positive.to_numpy()[0], atoms[:, 0, 2, 1])


def test_arviz_summarises_them(model):
    import arviz

    summary = arviz.summary(model.to_arviz(2000), var_names=["components"], kind="stats")
    assert len(summary) == 12
    found = summary["mean"].astype(float).to_numpy().reshape(3, 4)
    np.testing.assert_allclose(found, model.components_, atol=0.01)


def test_without_arviz_it_says_what_to_do(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"seminmf\[arviz\]"):
        model.to_arviz()


def test_strange_numbers_of_draws_are_refused(model):
    with pytest.raises(ValueError, match="n_draws must be an integer"):
        model.to_arviz(0)


# --- notebooks ----------------------------------------------------------------------------------


class Balanced(html.parser.HTMLParser):
    """Sees to it that what opens closes, and collects the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("cls", [SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF])
def test_a_notebook_shows_the_fit(cls):
    model = cls(3, random_state=0)
    assert "samples × " not in model._repr_mimebundle_()["text/html"]
    model.fit(X)
    part = fitted_summary(model)
    assert model._repr_mimebundle_()["text/html"].endswith(part)
    assert model._repr_html_().endswith(part)
    parser = Balanced()
    parser.feed(part)
    text = " ".join("".join(parser.text).split())
    assert not parser.open
    rounds = "sweeps" if cls is BayesianSkellamSNMF else "iterations"
    assert "30 samples × 4 features" in text and f"{model.n_iter_} {rounds}" in text
    assert all(f"component {k}" in text for k in range(3))
    assert f"{model.r2_:.3f}" in text and f"R² {-model.r2_drop_[1]:+.3f}" in text
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


def test_many_components_are_cut_short():
    model = EuclideanSNMF(30, random_state=0, max_iter=3).fit(
        np.random.RandomState(0).randn(40, 35)
    )
    text = model._repr_html_()
    shown = len(re.findall(r"component \d+", text))
    assert 0 < shown < 30
    assert f"and {30 - shown} more" in text
    assert "not converged" in text
