"""Gaps filled by SNMFImputer and by scikit-learn's imputers, on real tables with hidden cells.

    python benchmarks/imputing.py [--draws N] [--share X] [--most-rows N] [--tables a,b]

Cells are hidden at random. A number is the root mean square of the errors of hidden cells, each in
units of its feature's standard deviation: 1 is what the mean of a feature has. Behind it are the
seconds that `fit_transform` takes, in the same process.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn import datasets
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seminmf import EuclideanSNMF, SkellamSNMF, SNMFImputer
from seminmf.datasets import load_ionosphere, make_waveform

TABLES = {
    "iris": lambda: datasets.load_iris().data,
    "wine": lambda: datasets.load_wine().data,
    "diabetes": lambda: datasets.load_diabetes().data,
    "breast cancer": lambda: datasets.load_breast_cancer().data,
    "ionosphere": lambda: load_ionosphere().data[:, 2:],
    "waveform": lambda: make_waveform(random_state=0).data,
    "digits": lambda: datasets.load_digits().data,
}


def scaled(imputer):
    """The imputer on features of one size; distances and ridges ask for it."""
    return make_pipeline(StandardScaler(), imputer)


METHODS = {
    "mean": lambda: scaled(SimpleImputer(keep_empty_features=True)),
    "KNN": lambda: scaled(KNNImputer(keep_empty_features=True)),
    "iterative": lambda: scaled(IterativeImputer(random_state=0, keep_empty_features=True)),
    "SNMF": lambda: scaled(SNMFImputer(random_state=0, keep_empty_features=True)),
}
OTHERS = {
    "SNMF, K=3": lambda: scaled(SNMFImputer(3, random_state=0, keep_empty_features=True)),
    "no intercept": lambda: SNMFImputer(
        estimator=SkellamSNMF(n_init=1, random_state=0), random_state=0, keep_empty_features=True
    ),
    "least squares": lambda: scaled(
        SNMFImputer(estimator=EuclideanSNMF(random_state=0), random_state=0)
    ),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--most-rows", type=int, default=300)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    names = options.methods.split(";") if ";" in options.methods else options.methods.split(",")
    methods = {name: (METHODS | OTHERS)[name] for name in names}
    print(f"{'':14}" + "".join(f"{name:>16}" for name in methods))
    for table in options.tables.split(","):
        rows = [draw(TABLES[table](), methods, options, seed) for seed in range(options.draws)]
        errors, seconds = np.mean(rows, axis=0)
        cells = (f"{e:9.3f} {s:5.2f}s" for e, s in zip(errors, seconds, strict=True))
        print(f"{table:14}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def draw(X, methods, options, seed):
    """Errors and seconds of each method, for one choice of samples and hidden cells."""
    random = np.random.RandomState(seed)
    X = X[random.permutation(len(X))[: options.most_rows]]
    X = X[:, X.std(axis=0) > 0]
    hidden = random.uniform(size=X.shape) < options.share
    known = np.where(hidden, np.nan, X)
    errors, seconds = [], []
    for make in methods.values():
        begin = time.perf_counter()
        filled = fit_transform(make(), known)
        seconds.append(time.perf_counter() - begin)
        errors.append(np.sqrt(np.mean(((filled - X) / X.std(axis=0))[hidden] ** 2)))
    return errors, seconds


def fit_transform(imputer, known):
    """The filled table, in the unit of the data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filled = imputer.fit_transform(known)
    scaler = getattr(imputer, "named_steps", {}).get("standardscaler")
    return filled if scaler is None else scaler.inverse_transform(filled)


if __name__ == "__main__":
    main()
