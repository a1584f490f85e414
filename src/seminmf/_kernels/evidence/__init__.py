"""Kernels that integrate over activations or atoms."""
