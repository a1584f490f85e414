"""How Sphinx builds the site: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``.

Nothing is fetched while it builds, and a page loads nothing from elsewhere. Most of the time goes
into running the gallery's examples; with ``-D plot_gallery=0`` they are not run.
"""

import sys
from importlib.metadata import files
from pathlib import Path

from sklearn.experimental import enable_iterative_imputer  # noqa: F401

import seminmf

# The imputer is imported above because sphinx-gallery looks for the names that examples use, which
# scikit-learn hides until it is, and no example runs with plot_gallery=0.

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

REPOSITORY = "https://github.com/seminmf/seminmf"

project = "seminmf"
author = "The seminmf developers"
project_copyright = "The seminmf developers"
release = seminmf.__version__
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "plain_docstrings",
    "repository_links",
]
# The gallery's pages are made from the scripts in examples/.
exclude_patterns = ["_build", "examples", "gallery/*.ipynb", "gallery/*.py", "gallery/*.json"]
suppress_warnings = ["config.cache"]

# Names in single backticks in docstrings link to what they name, where that is on a page.
default_role = "py:obj"
highlight_language = "text"

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
# Headings have the anchors that they have on GitHub, so that one link does for both.
myst_heading_anchors = 4
# MathJax as one file, a part of the site, so that formulas need no network to be read.
MATHJAX = next(file for file in files("sphinx-mathjax-offline") if file.name == "tex-svg.js")
mathjax_path = MATHJAX.name
myst_update_mathjax = False

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_use_plots = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"__init__\.py|/_",
    "within_subsection_order": "gallery_order.Order",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "reference_url": {"seminmf": None},
    "doc_module": ("seminmf",),
    "backreferences_dir": "gallery/backreferences",
    "matplotlib_animations": False,
    "reset_modules": ("matplotlib", "gallery_style.use"),
}

html_theme = "pydata_sphinx_theme"
html_title = "seminmf"
html_baseurl = "https://seminmf.readthedocs.io/en/stable/"
html_static_path = ["_static", str(MATHJAX.locate())]
templates_path = ["_templates"]
html_css_files = ["seminmf.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "text": "seminmf",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
        "alt_text": "seminmf, home",
    },
    "icon_links": [{"name": "Repository", "url": REPOSITORY, "icon": "fa-brands fa-github"}],
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "search": []}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

repository_links_base = f"{REPOSITORY}/blob/main"
