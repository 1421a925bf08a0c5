"""Bayesian linear regression from running sums, at a cost that does not grow with the rows seen."""
