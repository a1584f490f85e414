"""Kernels for squared errors."""
