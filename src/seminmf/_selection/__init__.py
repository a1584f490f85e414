"""The parts of `seminmf.selection`: what is fitted, the three criteria, and the conclusion."""
