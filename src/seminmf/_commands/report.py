"""`seminmf report`: a page about a model."""

from __future__ import annotations

import os
from typing import Any
from zipfile import BadZipFile

import numpy as np

from .._resampling.bootstrap import bootstrap
from . import formats
from .models import is_tensor_model, load_model, read_for
from .options import TableOptions
from .output import say, show_progress, spoken_warnings
from .tables import is_label


def report(
    model: str,
    data: str | None,
    out: str,
    title: str | None,
    table: TableOptions,
    n_draws: int | None,
    force: bool = False,
) -> None:
    """Write a page about a model, and about what it says of a table."""
    from ..report import report as page

    formats.check_places([out], [model, data])
    if n_draws is not None and data is None:
        raise ValueError("--bootstrap needs the data that the model was fitted to.")
    if out != formats.STANDARD and os.path.isfile(out) and not force:
        raise ValueError(f"{out} is there already: --force overwrites it, -o names another page.")
    fitted = load_model(model, tensors=True)
    if is_tensor_model(fitted):
        content = page(fitted, _tensors(data), title=title, source=os.path.basename(data or model))
        formats.write_bytes(out, content.encode())
        if out != formats.STANDARD:
            say(f"Report: {out}")
        return
    options: dict[str, Any] = {"title": title, "source": os.path.basename(data or model)}
    X = None
    with spoken_warnings():
        if data is not None:
            found = read_for(fitted, data, table)
            X = found.X
            options["sample_names"] = None if found.ids is None else found.ids.astype(str).tolist()
            if found.labels is not None:
                labels = [str(label) if is_label(label) else None for label in found.labels]
                options["labels"] = labels
            if n_draws is not None:
                options["bootstrap"] = bootstrap(
                    fitted,
                    X,
                    n_draws=n_draws,
                    random_state=0,
                    verbose=int(show_progress()),
                )
        content = page(fitted, X, **options)
    formats.write_bytes(out, content.encode())
    if out != formats.STANDARD:
        say(f"Report: {out}")


def _tensors(path: str | None) -> Any:
    """The array of an .npy file, or the arrays of an .npz file by their names."""
    if path is None:
        return None
    if not path.endswith((".npy", ".npz")):
        raise ValueError(
            f"{path} must be an .npy file, or an .npz file with an array for each of several "
            "tensors: the model is one of tensors."
        )
    try:
        found = np.load(path, allow_pickle=False)
        return found if isinstance(found, np.ndarray) else {name: found[name] for name in found}
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path} has no arrays of numbers: {error}.") from error
