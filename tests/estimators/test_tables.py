"""Tables of other libraries, each with the real package: the same numbers give the same fit."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from seminmf import EuclideanSNMF, SkellamSNMF, fit_anndata

NAMES = list("abcd")
QUICK = {"random_state": 0, "max_iter": 20}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data():
    random = np.random.RandomState(0)
    X = np.round(random.gamma(1.0, size=(30, 2)) @ random.normal(size=(2, 4)) * 10)
    X[::5, 1] = X[3, 2] = np.nan
    return X


def columns():
    """A column of integers, one of floats with gaps and two of integers with gaps."""
    return {
        name: [None if np.isnan(x) else x for x in col]
        for name, col in zip(NAMES, data().T, strict=True)
    }


def polars():
    pl = pytest.importorskip("polars")
    return pl.DataFrame(columns()).with_columns(pl.col("b", "c").cast(pl.Int64))


def arrow():
    pa = pytest.importorskip("pyarrow")
    types = (pa.float64(), pa.int32(), pa.int64(), pa.float64())
    table = pa.table(columns())
    return table.cast(pa.schema(list(zip(NAMES, types, strict=True))))


def nullable():
    frame = pd.DataFrame(columns())
    return frame.astype({"a": "Float64", "b": "Int64", "c": "Int16", "d": "float64"})


def of_arrow():
    pytest.importorskip("pyarrow")
    types = {"a": "double[pyarrow]", "b": "int64[pyarrow]", "c": "int32[pyarrow]", "d": "float64"}
    return pd.DataFrame(columns()).astype(types)


def labelled():
    xr = pytest.importorskip("xarray")
    coords = {"day": np.arange(30), "place": NAMES}
    return xr.DataArray(data(), dims=("day", "place"), coords=coords, attrs={"unit": "mm"})


TABLES = [polars, arrow, nullable, of_arrow, labelled]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("estimator", [SkellamSNMF, EuclideanSNMF])
def test_a_table_of_any_library_is_a_matrix_with_names(table, estimator):
    X, plain = table(), estimator(2, **QUICK).fit(data())
    model = estimator(2, **QUICK).fit(X)
    assert_array_equal(model.components_, plain.components_)
    assert model.feature_names_in_.tolist() == NAMES
    assert_array_equal(model.transform(X), plain.transform(data()))
    filled = model.impute(X)
    assert type(filled) is type(X)
    assert_allclose(np.asarray(filled, dtype=float), plain.impute(data()))


@pytest.mark.parametrize("table", TABLES)
def test_other_names_are_refused(table):
    X = table()
    model = SkellamSNMF(2, **QUICK).fit(pd.DataFrame(data(), columns=list("wxyz")))
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(X)


def test_labels_of_xarray_stay():
    X = labelled()
    filled = SkellamSNMF(2, **QUICK).fit(X).impute(X)
    assert filled.dims == X.dims and filled.attrs == X.attrs
    assert filled.coords["place"].values.tolist() == NAMES


def test_xarray_in_chunks_is_dask():
    X = labelled().chunk({"day": 10, "place": -1})
    model = SkellamSNMF(2, **QUICK).fit(X)
    assert_allclose(model.components_, SkellamSNMF(2, **QUICK).fit(data()).components_, rtol=1e-6)


@pytest.mark.parametrize("table", [polars, arrow])
def test_integers_that_would_be_rounded_are_refused(table):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1, 2**53 + 1, 3], "b": [1, 2, 3]}).astype("Int64")
    if table is polars:
        X = pytest.importorskip("polars").DataFrame({"a": [1, 2**53 + 1, 3], "b": [1, 2, 3]})
    else:
        X = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    with pytest.raises(ValueError, match="float64 can hold"):
        SkellamSNMF(1).fit(X)


# --- AnnData --------------------------------------------------------------------------------------


def annotated(kind=np.asarray):
    anndata = pytest.importorskip("anndata")
    X = data()
    adata = anndata.AnnData(
        kind(np.nan_to_num(X)),
        obs=pd.DataFrame(index=[f"cell {j}" for j in range(30)]),
        var=pd.DataFrame({"wanted": [True, True, False, True]}, index=NAMES),
    )
    adata.layers["gaps"] = X
    return adata


def test_results_are_where_scanpy_has_them(tmp_path):
    adata = annotated()
    estimator = SkellamSNMF(2, **QUICK)
    model = fit_anndata(adata, estimator, layer="gaps", key_added="parts")
    plain = SkellamSNMF(2, **QUICK).fit(data())
    assert_array_equal(adata.obsm["X_parts"], plain.activations_)
    assert_array_equal(adata.varm["parts"], plain.components_.T)
    assert adata.uns["parts"]["r2"] == plain.r2_ and not hasattr(estimator, "atoms_")
    assert adata.uns["parts"]["params"]["layer"] == "gaps"
    assert model.feature_names_in_.tolist() == NAMES
    adata.write_h5ad(tmp_path / "a.h5ad")
    again = pytest.importorskip("anndata").read_h5ad(tmp_path / "a.h5ad")
    assert_array_equal(again.obsm["X_parts"], plain.activations_)
    assert_array_equal(again.uns["parts"]["r2_drop"], plain.r2_drop_)


@pytest.mark.parametrize("mask", ["wanted", np.array([True, True, False, True])])
def test_variables_that_are_left_out_are_zero(mask):
    adata = annotated()
    model = fit_anndata(adata, EuclideanSNMF(2, **QUICK), mask_var=mask)
    plain = EuclideanSNMF(2, **QUICK).fit(adata.X[:, [0, 1, 3]])
    assert_array_equal(adata.varm["snmf"][[0, 1, 3]], plain.components_.T)
    assert_array_equal(adata.varm["snmf"][2], 0)
    assert model.feature_names_in_.tolist() == ["a", "b", "d"]


@pytest.mark.parametrize("zeros", ["observed", "missing"])
def test_sparse_annotated_data(zeros):
    adata = annotated(sparse.csr_matrix)
    fit_anndata(adata, SkellamSNMF(2, **QUICK), sparse_zeros=zeros)
    plain = SkellamSNMF(2, sparse_zeros=zeros, **QUICK).fit(adata.X)
    assert_array_equal(adata.obsm["X_snmf"], plain.activations_)


def test_what_cannot_be_fitted_is_told():
    adata = annotated()
    with pytest.raises(
        TypeError, match=r"found an AnnData object, which seminmf.fit_anndata takes"
    ):
        SkellamSNMF(2).fit(adata)
    with pytest.raises(TypeError, match="adata must be an AnnData object; found ndarray"):
        fit_anndata(data(), SkellamSNMF(2))
    with pytest.raises(ValueError, match=r"layer must be one of \['gaps'\] or None; found 'raw'"):
        fit_anndata(adata, SkellamSNMF(2), layer="raw")
    with pytest.raises(ValueError, match=r"mask_var must be a column of adata.var.*found 'other'"):
        fit_anndata(adata, SkellamSNMF(2), mask_var="other")
    with pytest.raises(ValueError, match=r"mask_var must be True or False for each of the 4"):
        fit_anndata(adata, SkellamSNMF(2), mask_var=[True])
    with pytest.raises(ValueError, match="estimator must be a SkellamSNMF"):
        fit_anndata(adata, 3)
    assert not adata.obsm and not adata.varm
