"""The HTML page: findings in, text out."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from ..._views.markup import Markup, document, element, fragment, verbatim
from ..findings import Findings
from ..findings.tensors import TensorFindings
from . import about_components, about_data, about_fit
from .tensors import tensor_figures, tensor_sections
from .wording import count, percent, ratio

__all__ = ["page"]


def page(findings: Findings | TensorFindings) -> str:
    """All findings as one HTML page that needs nothing else."""
    style, script = (_own_file(name) for name in ("page.css", "page.js"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", findings.title),
        verbatim("style", style),
    )
    return document(head, element("body", _body(findings), verbatim("script", script)))


def _own_file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing is loaded, and no style or script runs but the library's own."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _body(findings: Findings | TensorFindings) -> Markup:
    if isinstance(findings, TensorFindings):
        content, figures = tensor_sections(findings), tensor_figures(findings)
    else:
        content, figures = _sections(findings), _key_figures(findings)
    links = [element("a", title, href=f"#{place}") for place, (title, _) in content.items()]
    return fragment(
        element(
            "header",
            element("h1", findings.title),
            element("p", findings.source, class_="source") if findings.source else None,
            _tiles(figures),
            element("nav", links, aria_label="Sections"),
        ),
        element("main", [_section(place, *item) for place, item in content.items()]),
        element("footer", element("p", f"Made by seminmf {findings.fit.version}")),
        element("div", id="tip", role="status", hidden=True),
    )


def _sections(findings: Findings) -> dict[str, tuple[str, Markup]]:
    """Titles and contents by their place on the page; those without content are left out."""
    fit = findings.fit
    found = {
        "look": ("Worth a look", about_fit.concerns_section(findings.concerns)),
        "fit": ("What was fitted", about_fit.fit_section(fit)),
        "convergence": ("How it converged", about_fit.convergence_section(findings.convergence)),
        "components": ("Components", about_components.components_section(findings.components, fit)),
        "examples": ("Nearest samples", about_components.examples_section(findings.examples)),
        "residuals": ("Residuals", about_data.residuals_section(findings.residuals)),
        "gaps": ("Gaps", about_data.gaps_section(findings.gaps)),
        "clusters": ("Clusters and labels", about_data.clusters_section(findings.clusters)),
    }
    return {place: (title, content) for place, (title, content) in found.items() if content}


def _section(place: str, title: str, content: Markup) -> Markup:
    heading = f"{place}-title"
    return element(
        "section", element("h2", title, id=heading), content, id=place, aria_labelledby=heading
    )


def _key_figures(findings: Findings) -> dict[str, str | None]:
    """The few numbers that one looks for first."""
    fit, residuals, gaps = findings.fit, findings.residuals, findings.gaps
    return {
        "samples": count(fit.n_samples),
        "features": count(fit.n_features),
        "components": count(fit.n_components),
        "iterations": count(findings.convergence.n_iter),
        "R²": ratio(fit.r2 if residuals is None else residuals.r_squared),
        "gaps": None if gaps is None else percent(gaps.count / gaps.n_cells),
    }


def _tiles(figures: dict[str, str | None]) -> Markup:
    tiles = [
        element("div", element("dt", name), element("dd", value))
        for name, value in figures.items()
        if value is not None
    ]
    return element("dl", tiles, class_="tiles")
