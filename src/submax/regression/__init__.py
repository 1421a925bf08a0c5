"""Bayesian linear regression from running sums: what it costs does not depend on the rows seen."""
