"""Kernels of Gibbs samplers."""
