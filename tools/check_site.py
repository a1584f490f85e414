"""Follow every link inside the built site: ``python tools/check_site.py docs/_build/html``.

A link leads to a file that is there and, with a fragment, to a place in it; and no page loads a
script, a style or a picture from elsewhere.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
# A <link> that says something about the page is not loaded with it.
STATED = {"canonical", "next", "prev", "search", "index", "author", "genindex"}


class Page(NamedTuple):
    places: set[str]
    links: list[str]
    loaded: list[str]


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page(set(), [], [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.page.places.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.page.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in STATED:
            self.page.loaded.append(values["href"])
        elif tag in LOADED and LOADED[tag] in values:
            self.page.loaded.append(values[LOADED[tag]])


def read(file: Path) -> Page:
    reader = Reader()
    reader.feed(file.read_text("utf-8"))
    return reader.page


def problems(site: Path) -> list[str]:
    """A sentence for each link that leads nowhere, and for each thing from elsewhere."""
    files = [file for file in sorted(site.rglob("*.html")) if "_static" not in file.parts]
    pages = {file.resolve(): read(file) for file in files}
    found = []
    for file, page in pages.items():
        name = file.relative_to(site.resolve())
        for target in [*page.links, *page.loaded]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loaded and parts.scheme != "data":
                    found.append(f"{name} loads {target}")
                continue
            goal = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not goal.exists():
                found.append(f"{name} links to {target}, which is not there")
            elif parts.fragment and goal in pages and goal.suffix == ".html":
                fragment = unquote(parts.fragment)
                if fragment not in {*pages[goal].places, "top", "__top"}:
                    found.append(f"{name} links to {target}: there is no such place")
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1])
    if not (site / "index.html").exists():
        sys.exit(f"{site} has no index.html: build the site first.")
    found = problems(site)
    print(*found, f"{len(found)} problems", sep="\n")
    sys.exit(bool(found))
