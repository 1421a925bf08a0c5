"""Experiments: the paper as TOML files, and the code that runs them and writes their results."""
