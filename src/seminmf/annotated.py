"""AnnData, the annotated matrices of scanpy: fitted from a layer, results beside the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ._data.reading import library_of
from ._estimators.base import BaseSNMF
from ._views.shares import shares


def fit_anndata(
    adata: Any,
    estimator: Any,
    *,
    layer: str | None = None,
    mask_var: ArrayLike | str | None = None,
    key_added: str = "snmf",
    sparse_zeros: str = "observed",
) -> Any:
    """Fit to an AnnData object, and write the results where scanpy's tools do.

    Parameters
    ----------
    adata : anndata.AnnData
        Observations are samples, variables are features. It gets

        - ``obsm["X_<key_added>"]``: activations, a column for each component;
        - ``varm["<key_added>"]``: components, a column for each; 0 for variables left out;
        - ``uns["<key_added>"]``: parameters, `r2`, `r2_drop` and `share` of each component.
    estimator : SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF
        Whose settings the fit has; it stays as it is.
    layer : str or None, default=None
        The layer that is fitted; None is `adata.X`.
    mask_var : array of bool, str or None, default=None
        Variables that are fitted, as a mask or as the name of a column of `adata.var`, such as
        ``"highly_variable"``. None is all.
    key_added : str, default="snmf"
        Under which name the results are written.
    sparse_zeros : {"observed", "missing"}, default="observed"
        What cells are that a sparse matrix does not store: data that are 0, as is the custom of
        AnnData, or gaps. `EuclideanSNMF` takes no sparse data.

    Returns
    -------
    fitted estimator
        It knows the names of the variables, if the layer is dense.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from seminmf import SkellamSNMF, fit_anndata
    >>> from seminmf.datasets import load_ionosphere
    >>> adata = AnnData(load_ionosphere().data[:100, 2:])
    >>> model = fit_anndata(adata, SkellamSNMF(3, random_state=0))
    >>> adata.obsm["X_snmf"].shape, adata.varm["snmf"].shape
    ((100, 3), (32, 3))
    """
    if library_of(adata) != "anndata" or not hasattr(adata, "obsm"):
        raise TypeError(f"adata must be an AnnData object; found {type(adata).__name__}.")
    if not isinstance(estimator, BaseSNMF):
        raise ValueError(
            "estimator must be a SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF; "
            f"found {estimator!r}."
        )
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"layer must be one of {sorted(adata.layers)} or None; found {layer!r}.")
    mask = _mask(adata, mask_var)
    model = clone(estimator)
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise ValueError("adata must have data in X, or layer must name them; found none.")
    model.fit(_features(X, adata, mask, model, sparse_zeros))
    components = np.zeros((adata.n_vars, len(model.components_)), dtype=model.components_.dtype)
    components[mask] = model.components_.T
    adata.obsm[f"X_{key_added}"] = np.asarray(model.activations_)
    adata.varm[key_added] = components
    adata.uns[key_added] = {
        "params": _parameters(model, layer),
        "r2": model.r2_,
        "r2_drop": model.r2_drop_,
        "share": shares(model),
    }
    return model


def _mask(adata: Any, mask_var: Any) -> NDArray:
    """Which variables are fitted (I,)."""
    if mask_var is None:
        return np.ones(adata.n_vars, dtype=bool)
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise ValueError(
                f"mask_var must be a column of adata.var, {list(adata.var)}; found {mask_var!r}."
            )
        mask_var = adata.var[mask_var]
    mask = np.asarray(mask_var)
    if mask.shape != (adata.n_vars,) or mask.dtype != bool or not mask.any():
        raise ValueError(
            f"mask_var must be True or False for each of the {adata.n_vars} variables, and True "
            f"for one at least; found {mask.dtype} of the shape {mask.shape}."
        )
    return mask


def _features(X: Any, adata: Any, mask: NDArray, model: Any, sparse_zeros: str) -> Any:
    """The variables that are fitted: with their names, if they are in an array."""
    if hasattr(X, "tocsr"):
        if hasattr(model, "sparse_zeros"):
            model.set_params(sparse_zeros=sparse_zeros)
        return X if mask.all() else X[:, mask]
    if not isinstance(X, np.ndarray):  # on disk or in chunks
        return X if mask.all() else X[:, mask]
    import pandas as pd

    return pd.DataFrame(X[:, mask], index=adata.obs_names, columns=adata.var_names[mask])


def _parameters(model: Any, layer: str | None) -> dict[str, Any]:
    """Parameters as files of AnnData have them."""
    given = {"estimator": type(model).__name__, "layer": layer} | model.get_params(deep=False)
    plain = (bool, int, float, str, np.ndarray)
    return {name: value for name, value in given.items() if isinstance(value, plain)}
