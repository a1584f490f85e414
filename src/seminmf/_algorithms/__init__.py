"""Algorithms: small functions of a problem and a state, and the loop that drives them."""
