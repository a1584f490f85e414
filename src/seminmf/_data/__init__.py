"""Data: sources that yield blocks of samples, what they sum up to, and where work is done."""
