"""Comparisons of the policies of a finished sweep."""
