"""What a report shows, as numbers and words; nothing in here knows of HTML."""

from __future__ import annotations

from dataclasses import dataclass

from ..._views.concerns import Concern
from ..subject import Subject
from .clusters import Clusters
from .components import Components
from .concerns import concerns
from .convergence import Convergence
from .examples import Examples
from .fit import Fit
from .gaps import Gaps
from .residuals import Residuals


@dataclass(frozen=True)
class Findings:
    """All that a page says. What needs data or labels is None without them."""

    title: str
    source: str | None
    fit: Fit
    concerns: list[Concern]
    convergence: Convergence
    components: Components
    examples: Examples
    residuals: Residuals | None
    gaps: Gaps | None
    clusters: Clusters | None

    @classmethod
    def of(cls, subject: Subject) -> Findings:
        """Find out all about a model."""
        fit = Fit.of(subject)
        components = Components.of(subject)
        n_components = len(subject.components)
        plural = "component" if n_components == 1 else "components"
        return cls(
            title=subject.title or f"{fit.estimator} with {n_components} {plural}",
            source=subject.source,
            fit=fit,
            concerns=concerns(subject),
            convergence=Convergence.of(subject),
            components=components,
            examples=Examples.of(subject, components.order),
            residuals=Residuals.of(subject),
            gaps=Gaps.of(subject),
            clusters=Clusters.of(subject),
        )
