"""Estimators that learn from new rows alone."""
