"""Sums over rows, and confidence intervals from them: for one look, or for all looks together."""
