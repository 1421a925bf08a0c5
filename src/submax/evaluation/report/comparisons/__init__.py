"""Comparisons of policies: candidates, baselines, differences, and how they are shown."""
