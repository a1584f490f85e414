"""Passes over the data: compiled kernels for one block of samples, and the sum over blocks."""
