"""What pytest leaves alone here: what needs Sphinx, what is built, and scripts that run at once."""

collect_ignore = ["conf.py", "_build", "examples", "gallery"]
