"""Classifiers of other libraries: named, copied, fitted and asked for probabilities."""
