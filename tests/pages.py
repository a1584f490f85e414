"""Data, models and names for tests of the report, and pages that have such a name everywhere."""

import numpy as np
import pandas as pd

from seminmf import BayesianSkellamSNMF
from seminmf.report import report

J, I, K = 60, 6, 3
HOSTILE = [
    "<script>window.hacked = 1; alert(1)</script>",
    '"><img src=x onerror="window.hacked = 1; alert(1)">',
    "'",
    "&",
    "&lt;b&gt;",
    "</title></style></script><h1>",
    "javascript:alert(1)",
    "<!-- --> ]]> <![CDATA[",
    "a\x00b\x07c\x1b[31md\x7fe\x85f",
    "photo\u202egnp.exe\u2066",
    "\ud800",
    "x" * 5000,
    "WWWW" * 20,
    "",
    " \n\t ",
]


def draw(seed=0, n_samples=J, n_features=I):
    """Real data with gaps, as a DataFrame with names, and the classes of the samples."""
    random = np.random.default_rng(seed)
    labels = random.integers(K, size=n_samples)
    activations = random.gamma(0.3, 1.0, (n_samples, K))
    activations[np.arange(n_samples), labels] += 3
    components = np.random.default_rng(99).normal(0, 1, (K, n_features))
    X = activations @ components + 0.3 * random.normal(size=(n_samples, n_features))
    X[random.random(X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(
        X,
        columns=[f"column {i}" for i in range(n_features)],
        index=[f"row {j}" for j in range(n_samples)],
    )
    return frame, np.array(["red", "green", "blue"])[labels]


X, LABELS = draw()


def fit(estimator, data=X, n_components=K, **options):
    return estimator(n_components, random_state=0, **options).fit(data)


def named_report(name):
    """A page with this name everywhere: features, samples, labels, title and source."""
    # Tables cannot hold half characters, and other names can.
    column = name.encode("utf-8", "replace").decode()
    frame = X.set_axis([f"{column} {i}" for i in range(I)], axis=1)
    return report(
        fit(BayesianSkellamSNMF, frame, tol=1e-2),
        frame,
        title=name or " ",
        source=name or " ",
        labels=[name, "other"] * (J // 2),
        sample_names=[name] * J,
    )
