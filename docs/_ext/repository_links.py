"""Links of the Markdown pages that are good on GitHub, made good on the site.

On GitHub a page links to files of the repository: the changelog, a benchmark, an example's script.
On the site the first is a page, the last a page of the gallery, and what has no page is linked to
in the repository.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGES = {"../CHANGELOG.md": "changelog.md", "../CONTRIBUTING.md": "contributing.md"}
TARGET = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")


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
    if target in PAGES:
        return PAGES[target]
    if example := re.fullmatch(r"examples/(plot_\w+)\.py", target):
        return f"gallery/{example[1]}.rst"
    if target.startswith("../"):
        return posixpath.join(base, target.removeprefix("../"))
    if target.endswith(".py") and "://" not in target:
        return posixpath.join(base, "docs", target)
    return target


def rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    if str(app.env.doc2path(name)).endswith(".md"):
        base = app.config.repository_links_base
        source[0] = TARGET.sub(lambda found: on_site(found[1], base), source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("repository_links_base", "", "env")
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
