"""Comparisons of rivals with the sources of other people; see ``rival_checks.py``."""
