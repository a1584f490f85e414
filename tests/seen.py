"""What can be learned of a prior if all atoms and activations are seen: no method can know more."""

import numpy as np
from scipy import stats
from scipy.optimize import minimize
from scipy.special import gammaln, polygamma


def most_likely_gamma(activations):
    """Shapes and rates (K,) of gamma distributions, from draws (n, K)."""
    fits = [stats.gamma.fit(draws, floc=0) for draws in activations.T]
    return np.array([shape for shape, _, _ in fits]), np.array([1 / scale for _, _, scale in fits])


def most_likely_dirichlet(atoms):
    """Shapes (2, K, I) of Dirichlet distributions over signs and features, from draws (n, ...)."""
    mean_logs = np.log(np.maximum(atoms, 1e-300)).mean(axis=0)
    shapes = np.empty(mean_logs.shape)
    for k in range(shapes.shape[1]):
        shapes[:, k] = _dirichlet_of(mean_logs[:, k].ravel()).reshape(mean_logs[:, k].shape)
    return shapes


def _dirichlet_of(mean_logs):
    """Shapes that maximise the likelihood of draws with these means of ln θ."""

    def loss(logs):
        shapes = np.exp(logs)
        return np.sum(gammaln(shapes)) - gammaln(shapes.sum()) - (shapes - 1) @ mean_logs

    return np.exp(minimize(loss, np.zeros(mean_logs.size), options={"gtol": 1e-8}).x)


def sampling_errors(shape, n_draws):
    """Standard deviations of ln α of Dirichlet shapes (2, K, I), from so many draws."""
    deviations = np.empty_like(shape)
    for k in range(shape.shape[1]):
        own = shape[:, k].ravel()
        information = n_draws * (np.diag(polygamma(1, own)) - polygamma(1, own.sum()))
        variances = np.diag(np.linalg.inv(information)).reshape(shape[:, k].shape)
        deviations[:, k] = np.sqrt(variances) / shape[:, k]
    return deviations
