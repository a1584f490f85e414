"""Fits done again: components that come back, and how far they vary."""
