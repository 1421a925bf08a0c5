"""Estimators that choose one slot after the other."""
