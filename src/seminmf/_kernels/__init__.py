"""Kernels: compiled code for one block of samples, and the sums over blocks."""
