"""Policies as scikit-learn estimators, and Gymnasium in both directions; each needs its extra."""
