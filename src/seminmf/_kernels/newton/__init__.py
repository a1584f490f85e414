"""Kernels of Newton's method."""
