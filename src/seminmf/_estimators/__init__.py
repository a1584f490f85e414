"""What estimators are made of: the frame of a fit, checks, checkpoints and files."""
