"""Inference: small functions of what the passes return, and the loop that drives them."""
