"""Every example of the gallery runs as a script, and has what its page needs."""

from __future__ import annotations

import ast
import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
by_name = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
# These take a second each; the others are marked slow, and run when the site is built.
QUICK = {
    "plot_football",
    "plot_from_nmf",
    "plot_fund_styles",
    "plot_nonnegative",
    "plot_radar",
    "plot_ratings",
    "plot_sound",
    "plot_source_apportionment",
}


def test_sphinx_gallery_runs_all_of_them():
    """It runs what is called plot_…, and nothing is in a folder below."""
    assert len(SCRIPTS) >= 16
    assert all(path.name.startswith("plot_") for path in SCRIPTS)
    assert sorted(EXAMPLES.rglob("*.py")) == SCRIPTS


def test_the_order_of_the_gallery_names_examples_that_are_there():
    order = runpy.run_path(str(EXAMPLES.parent / "_ext" / "gallery_order.py"))
    named = [*order["FIRST"], *order["LAST"]]
    assert sorted(set(named)) == sorted(named)
    assert set(named) <= {path.name for path in SCRIPTS}
    assert sorted([*named, "plot_other.py"], key=order["Order"](".")) == [
        *order["FIRST"],
        "plot_other.py",
        *order["LAST"],
    ]


@by_name
def test_a_page_begins_with_a_title_and_a_few_sentences(path):
    text = path.read_text("utf-8")
    title, rule, empty, *prose = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert set(rule) == {"="} and len(rule) >= len(title) and not empty
    assert 1 <= " ".join(prose).count(". ") + 1 <= 6
    assert "\n# %%\n" in text and text.endswith("plt.show()\n")


@by_name
def test_data_need_no_network(path):
    text = path.read_text("utf-8")
    assert "fetch_" not in text and "scipy.datasets" not in text


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in QUICK else pytest.mark.slow)
        for path in SCRIPTS
    ],
)
def test_example_runs_and_draws_one_picture(path):
    """As a script, without a warning that a reader would wonder at."""
    import matplotlib
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        try:
            runpy.run_path(str(path), run_name="__main__")
            assert len(plt.get_fignums()) == 1
        finally:
            plt.close("all")
