"""Kernels of EM and variational Bayes."""
