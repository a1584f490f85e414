"""What the commands of `seminmf` do; `seminmf.cli` has their options."""
