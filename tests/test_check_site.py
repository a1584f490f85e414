"""The check of the built site sees what is broken, and nothing else."""

import runpy
from pathlib import Path

import pytest

problems = runpy.run_path(str(Path(__file__).parents[1] / "tools/check_site.py"))["problems"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<a href="other.html#here">', None),
        ('<a href="https://example.org/x.html#y">', None),
        ('<link rel="canonical" href="https://example.org">', None),
        ('<a href="#top"><a href="#own"><p id="own">', None),
        ('<a href="missing.html">', "links to missing.html, which is not there"),
        ('<img src="missing.png">', "links to missing.png, which is not there"),
        ('<a href="other.html#gone">', "links to other.html#gone: there is no such place"),
        ('<a href="#gone">', "links to #gone: there is no such place"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css"),
    ],
)
def test_links_are_followed(tmp_path, body, said):
    (tmp_path / "index.html").write_text(body)
    (tmp_path / "other.html").write_text('<h1 id="here">')
    assert problems(tmp_path) == ([] if said is None else [f"index.html {said}"])
