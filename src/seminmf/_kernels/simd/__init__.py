"""Vectors of numbers, and products of small matrices, in compiled code."""
