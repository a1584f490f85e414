"""Links of the Markdown pages that are good on GitHub, made good on the site.

On GitHub a page links to files of the repository: the changelog, a benchmark, an example's script.
On the site the first is a page, the last a page of the gallery, and what has no page is linked to
in the repository. A page that includes a file of the repository has that file's links.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGES = {
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "examples": "gallery/index.rst",
}
TARGET = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")
INCLUDED = re.compile(r"^```\{include\} \.\./(\S+)\n```$", re.M)


def on_site(target: str, base: str) -> str:
    """What the target of a link in docs/ is on the site.

    >>> on_site("../CHANGELOG.md", "https://example.org/blob/main")
    'changelog.md'
    >>> on_site("examples/plot_digits.py", "https://example.org/blob/main")
    'gallery/plot_digits.rst'
    >>> on_site("../benchmarks/memory.py", "https://example.org/blob/main")
    'https://example.org/blob/main/benchmarks/memory.py'
    >>> on_site("guide.md", "https://example.org/blob/main")
    'guide.md'
    """
    if target.rstrip("/") in PAGES:
        return PAGES[target.rstrip("/")]
    if example := re.fullmatch(r"examples/(plot_\w+)\.py", target):
        return f"gallery/{example[1]}.rst"
    if target.startswith("../"):
        return posixpath.join(base, target.removeprefix("../"))
    if target.endswith(".py") and "://" not in target:
        return posixpath.join(base, "docs", target)
    return target


def from_docs(target: str) -> str:
    """What the target of a link in the repository's root is from docs/.

    >>> from_docs("docs/guide.md"), from_docs("LICENSE"), from_docs("https://example.org")
    ('guide.md', '../LICENSE', 'https://example.org')
    """
    if re.match(r"\w+:", target):
        return target
    return target.removeprefix("docs/") if target.startswith("docs/") else f"../{target}"


def rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    if not str(app.env.doc2path(name)).endswith(".md"):
        return
    text = source[0]
    if included := INCLUDED.search(text):
        file = Path(app.srcdir).parent / included[1]
        app.env.note_dependency(str(file))
        text = TARGET.sub(lambda found: from_docs(found[1]), file.read_text("utf-8"))
    base = app.config.repository_links_base
    text = TARGET.sub(lambda found: on_site(found[1], base), text)
    # The empty line that ends an example for doctest is no part of it on a page.
    source[0] = text.replace("\n\n```\n", "\n```\n")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("repository_links_base", "", "env")
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
