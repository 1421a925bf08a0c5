"""Experiments described by TOML files, among them those of the paper, and the code to run them."""
