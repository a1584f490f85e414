"""Every relative link of README and pages leads somewhere: to a file, and to a heading of it."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob(".github/*.md")])
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
# What the site makes has no file here, and is looked for when the site is built.
BUILT = re.compile(r"gallery/\w+\.(rst|html|md)|reference/generated/.+")


@cache
def text_of(page):
    """A page without code, where brackets are no links."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", lambda code: "`" + "x" * (len(code[0]) - 2) + "`", text)


@cache
def anchors_of(page):
    """Anchors of the headings, as GitHub and the site make them."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(), flags=re.M | re.S)
    found = set()
    for heading in re.findall(r"^#{1,6} (.+)$", text, re.M):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(slug if slug not in found else f"{slug}-1")
    return found


def relative_links(page):
    return [link for link in LINK.findall(text_of(page)) if not re.match(r"\w+:", link)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links(page):
    broken = []
    for link in relative_links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if BUILT.fullmatch(path):
            continue
        if not target.exists():
            broken.append(f"{link}: no such file")
        elif anchor and anchor not in anchors_of(target):
            broken.append(f"{link}: no such heading; there are {sorted(anchors_of(target))}")
    assert not broken, "\n".join(broken)


def test_pages_have_links_and_anchors_that_this_test_sees():
    """The patterns above are what this rests on."""
    links = {page.name: relative_links(page) for page in PAGES}
    assert "docs/images/factorization.png" in links["README.md"]
    assert sum(map(len, links.values())) > 100
    assert "the-papers-limit-dispersion00" in anchors_of(ROOT / "docs/model.md")


def test_pictures_have_words_for_those_who_do_not_see_them():
    for page in PAGES:
        assert "![](" not in text_of(page), page


def test_every_picture_is_on_a_page():
    shown = "".join(page.read_text() for page in PAGES)
    for image in (ROOT / "docs/images").iterdir():
        assert f"images/{image.name}" in shown, image.name
