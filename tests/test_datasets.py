"""The bundled data arrive complete, in the forms scikit-learn's loaders offer."""

from collections import Counter
from importlib.metadata import PackageNotFoundError, files

import numpy as np
import pandas as pd
import pytest

from seminmf import datasets

LOADERS = [
    pytest.param(datasets.load_ionosphere, (351, 34), {"g": 225, "b": 126}, id="ionosphere"),
]


@pytest.mark.parametrize(("loader", "shape", "class_counts"), LOADERS)
def test_bunch(loader, shape, class_counts):
    bunch = loader()
    assert bunch.data.shape == shape
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert Counter(bunch.target.tolist()) == class_counts
    assert list(bunch.target_names) == sorted(class_counts)
    assert len(bunch.feature_names) == shape[1]
    assert bunch.frame is None
    assert "UCI" in bunch.DESCR and "CC BY 4.0" in bunch.DESCR


@pytest.mark.parametrize(("loader", "shape", "class_counts"), LOADERS)
def test_forms_agree(loader, shape, class_counts):
    bunch = loader()
    X, y = loader(return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)

    framed = loader(as_frame=True)
    assert isinstance(framed.data, pd.DataFrame) and isinstance(framed.target, pd.Series)
    assert framed.frame.shape == (shape[0], shape[1] + 1)
    assert list(framed.data.columns) == framed.feature_names == bunch.feature_names
    np.testing.assert_array_equal(framed.data.to_numpy(), X)
    np.testing.assert_array_equal(framed.target.to_numpy(dtype=str), y)

    X_frame, y_frame = loader(return_X_y=True, as_frame=True)
    pd.testing.assert_frame_equal(X_frame, framed.data)
    pd.testing.assert_series_equal(y_frame, framed.target)


def test_ionosphere_values():
    X, y = datasets.load_ionosphere(return_X_y=True)
    assert X.min() == -1.0 and X.max() == 1.0
    assert not X[:, 1].any()
    np.testing.assert_array_equal(X[0, :4], [1.0, 0.0, 0.99539, -0.05889])
    assert list(y[:2]) == ["g", "b"]


def test_installed_package_has_the_data():
    """The tests run on the source tree; this looks at what the wheel brought."""
    try:
        installed = {str(path) for path in files("seminmf") or []}
    except PackageNotFoundError:
        pytest.skip("seminmf is not installed")
    if "seminmf/__init__.py" not in installed:
        pytest.skip("seminmf is installed in editable mode")
    assert "seminmf/py.typed" in installed
    assert "seminmf/datasets/data/ionosphere.csv.gz" in installed
    assert "seminmf/datasets/data/README.md" in installed
