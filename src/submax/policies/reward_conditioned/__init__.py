"""Policies made of an estimator and a strategy."""
