"""Scalar functions, compiled, that the passes over the data and the public functions share.

Every function takes and returns plain scalars of one floating-point type. None has a branch, a
table look-up or a call into the C library, so that a loop over an array of cells becomes packed
vector instructions. Each comes in float64 and float32: the type of the argument decides.
"""
