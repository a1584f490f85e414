"""The report of a fitted model: one HTML page that explains it, and needs nothing but a browser."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._estimators.tensor import BaseSNTF
from .._resampling.bootstrap import Bootstrap
from .findings import Findings
from .findings.tensors import TensorFindings, TensorSubject
from .page import page
from .subject import Subject, tidy

__all__ = ["report"]


def report(
    model: Any,
    X: Any = None,
    *,
    title: str | None = None,
    source: str | None = None,
    labels: ArrayLike | None = None,
    sample_names: ArrayLike | None = None,
    feature_scale: ArrayLike | None = None,
    bootstrap: Bootstrap | None = None,
) -> str:
    """Explain a fitted model on one HTML page.

    The page is complete in itself: it loads nothing from elsewhere, and names of features and
    samples are shown as they are and never executed.

    Parameters
    ----------
    model : SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF, SkellamSNTF or BayesianSkellamSNTF
        A fitted model.
    X : array-like of shape (n_samples, n_features), what tensor models take, or None, default=None
        Data, NaN where not observed: those of the fit, or others with the same features. Without
        them there are no sections on residuals and gaps. For tensor models all arguments that
        follow `source` are None.
    title : str or None, default=None
        Title of the page. None names the estimator and its number of components.
    source : str or None, default=None
        Where the data come from, a file for instance. It is shown below the title.
    labels : array-like of shape (n_samples,) or None, default=None
        Known classes of the samples, to compare the clusters with. None and NaN are no class.
    sample_names : array-like of shape (n_samples,) or None, default=None
        Names of the samples. None takes the index of X, if X is a DataFrame.
    feature_scale : array-like of shape (n_features,) or None, default=None
        What you divided the features by before the fit: the model takes X / feature_scale. The page
        shows values in the unit of X. A model that scales features itself needs no such numbers.
    bootstrap : Bootstrap or None, default=None
        What `seminmf.bootstrap` found for the model: the page shows its intervals of components, in
        the place of the model's own, and how often each came back.

    Returns
    -------
    str
        The page. Write it in UTF-8.

    Examples
    --------
    >>> from seminmf import SkellamSNMF, sample_skellam_snmf
    >>> from seminmf.report import report
    >>> X, _, _ = sample_skellam_snmf(50, 4, 2, missing=0.1, random_state=0)
    >>> model = SkellamSNMF(n_components=2, likelihood="integer", random_state=0).fit(X)
    >>> html = report(model, X, title="Two components")
    >>> html.startswith("<!DOCTYPE html>"), "Two components" in html
    (True, True)
    """
    if isinstance(model, BaseSNTF):
        given = {
            "labels": labels,
            "sample_names": sample_names,
            "feature_scale": feature_scale,
            "bootstrap": bootstrap,
        }
        return page(TensorFindings.of(_tensor_subject(model, X, title, source, given)))
    subject = Subject.of(
        model,
        X,
        title=title,
        source=source,
        labels=labels,
        sample_names=sample_names,
        feature_scale=feature_scale,
        bootstrap=bootstrap,
    )
    return page(Findings.of(subject))


def _tensor_subject(
    model: BaseSNTF, X: Any, title: str | None, source: str | None, given: dict[str, Any]
) -> TensorSubject:
    """Check what the user handed in with a tensor model, and find the factors of the data."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} must be None for a tensor model, whose names come from the labels of X; "
                f"found a {type(value).__name__}."
            )
    check_is_fitted(model)
    return TensorSubject(
        model=model,
        cells={} if X is None else model._cells(X),
        title=tidy(title) if title else None,
        source=tidy(source) if source else None,
    )
