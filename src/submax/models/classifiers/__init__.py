"""Classifiers of other libraries: how they are named, copied, fitted and evaluated."""
