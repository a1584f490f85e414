"""The bundled data arrive complete, in the forms scikit-learn's loaders offer."""

from collections import Counter
from importlib.metadata import PackageNotFoundError, files

import numpy as np
import pandas as pd
import pytest

from seminmf import datasets

LOADERS = [
    pytest.param(datasets.load_ionosphere, (351, 34), {"g": 225, "b": 126}, id="ionosphere"),
    pytest.param(
        datasets.load_segment,
        (2310, 19),
        dict.fromkeys(
            ["brickface", "cement", "foliage", "grass", "path", "sky", "window"],
            330,
        ),
        id="segment",
    ),
    pytest.param(
        datasets.load_shuttle,
        (14500, 9),
        {"1": 11478, "2": 13, "3": 39, "4": 2155, "5": 809, "6": 4, "7": 2},
        id="shuttle",
    ),
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


def test_segment_values():
    X = datasets.load_segment(as_frame=True).data
    assert (X["region-pixel-count"] == 9).all()
    assert X["exred-mean"].min() == -49.666668
    np.testing.assert_array_equal(X.iloc[0, :4], [218.0, 178.0, 9.0, 0.11111111])


def test_shuttle_values():
    X, y = datasets.load_shuttle(return_X_y=True)
    assert X.min() == -26739 and X.max() == 15164
    np.testing.assert_array_equal(X, X.round())
    np.testing.assert_array_equal(X[0], [55, 0, 81, 0, -6, 11, 25, 88, 64])
    assert y[0] == "4"


def test_waveform_is_what_its_description_says():
    bunch = datasets.make_waveform(60000, random_state=0, return_X_y=False)
    peaks = bunch.waves.argmax(axis=1) + 1  # features are counted from 1
    assert list(peaks) == [7, 15, 11] and (bunch.waves.max(axis=1) == 6).all()
    assert list(bunch.target_names) == [0, 1, 2]
    for label, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        X = bunch.data[bunch.target == label]
        assert len(X) == pytest.approx(20000, rel=0.03)
        a, b = bunch.waves[first], bunch.waves[second]
        np.testing.assert_allclose(X.mean(axis=0), (a + b) / 2, atol=0.06)
        # A uniform share has variance 1/12, and what differs goes along a − b.
        covariance = np.eye(21) + np.outer(a - b, a - b) / 12
        np.testing.assert_allclose(np.cov(X.T), covariance, atol=0.15)


def test_waveform_forms_agree():
    X, y = datasets.make_waveform(50, random_state=3)
    bunch = datasets.make_waveform(50, random_state=3, return_X_y=False)
    assert X.shape == (50, 21) and X.dtype == np.float64
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    assert len(bunch.feature_names) == 21 and "Breiman" in bunch.DESCR
    assert datasets.make_waveform()[0].shape == (5000, 21)
    assert not np.array_equal(X, datasets.make_waveform(50, random_state=4)[0])


@pytest.mark.parametrize("n_samples", [0, 2.5, True, "many"])
def test_waveform_refuses(n_samples):
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1; found"):
        datasets.make_waveform(n_samples)


def test_installed_package_has_the_data():
    """The tests run on the source tree; this looks at what the wheel brought."""
    try:
        installed = {str(path) for path in files("seminmf") or []}
    except PackageNotFoundError:
        pytest.skip("seminmf is not installed")
    if "seminmf/__init__.py" not in installed:
        pytest.skip("seminmf is installed in editable mode")
    assert "seminmf/py.typed" in installed
    for name in ("ionosphere", "segment", "shuttle"):
        assert f"seminmf/datasets/data/{name}.csv.gz" in installed
    assert "seminmf/datasets/data/README.md" in installed
