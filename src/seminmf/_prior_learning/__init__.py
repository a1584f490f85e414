"""The parts of `seminmf.prior_learning`: posteriors, what they say of their prior, and streams."""
