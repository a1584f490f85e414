"""The model: a likelihood, factors and their priors. It knows nothing of where data are."""
