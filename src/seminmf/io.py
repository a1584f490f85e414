"""Model files: fitted estimators, written and read. Nothing in a file is ever executed."""

from __future__ import annotations

import os
from typing import Any

from ._estimators import container, files, tensor_files
from ._estimators.container import Content
from ._estimators.files import FORMAT, FORMAT_VERSION
from ._prior_learning import files as learner_files
from .bayesian import BayesianSkellamSNMF
from .euclidean import EuclideanSNMF
from .prior_learning import PriorLearner
from .skellam import SkellamSNMF
from .tensor import BayesianSkellamSNTF, SkellamSNTF

_ESTIMATORS = {kind.__name__: kind for kind in (SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF)}
LEARNER = PriorLearner.__name__
_TENSORS = {kind.__name__: kind for kind in (SkellamSNTF, BayesianSkellamSNTF)}
_KINDS = (*_ESTIMATORS, *_TENSORS, LEARNER)


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file; the same as its method `save`.

    Parameters
    ----------
    estimator : estimator of this library
        A fitted estimator. A `random_state` that is a generator is written as None.
    path : str or path-like
        File to write, whole or not at all. An older file of that name is replaced.
    """
    if type(estimator) not in (*_ESTIMATORS.values(), *_TENSORS.values(), PriorLearner):
        kind = type(estimator).__name__
        raise ValueError(f"save takes one of {', '.join(_KINDS)}; found {kind}.")
    estimator.save(path)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator from a file that its method `save` wrote.

    Parameters
    ----------
    path : str or path-like
        File to read.

    Returns
    -------
    estimator of this library
        It does what the one that was saved does, to the last bit.

    Raises
    ------
    ValueError
        If the file is not a model, or not a sound one. Nothing in a file is executed.

    Examples
    --------
    >>> import tempfile
    >>> from seminmf import SkellamSNMF, load, sample_skellam_snmf
    >>> X, _, _ = sample_skellam_snmf(50, 4, 2, random_state=0)
    >>> model = SkellamSNMF(n_components=2, likelihood="integer", random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.safetensors")
    ...     again = load(f"{folder}/model.safetensors")
    >>> bool((again.transform(X) == model.transform(X)).all())
    True
    """
    try:
        return _rebuild(container.read(path, FORMAT, _names_for))
    except ValueError as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{os.fspath(path)} is not a seminmf model: {reason}.") from error


def _names_for(header: dict[str, Any]) -> set[str] | None:
    """Names of the arrays that a file with this header may hold, if it is one of ours.

    Those of tensor models follow from the model, and are looked at when it is rebuilt.
    """
    version = header.get("format_version")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"its format version is {version!r}, and this library reads {FORMAT_VERSION}"
        )
    name = header.get("estimator")
    if not isinstance(name, str) or name not in _KINDS:
        raise ValueError(f"its estimator is {name!r}, which is unknown")
    inner = ("estimator_parameters",) if name == LEARNER else ()
    for part in ("parameters", "fitted", *inner):
        if not isinstance(header.get(part), dict):
            raise ValueError(f"its header has no {part}")
    if name in _TENSORS:
        return None
    return learner_files.array_names() if name == LEARNER else files.array_names(_ESTIMATORS[name])


def _rebuild(content: Content) -> Any:
    """The estimator that the content describes."""
    name = content.header["estimator"]
    if name == LEARNER:
        return learner_files.rebuild(PriorLearner, content)
    if name in _TENSORS:
        return tensor_files.rebuild(_TENSORS[name], content)
    return files.rebuild(_ESTIMATORS[name], content)
