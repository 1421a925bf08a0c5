"""Bounds of sums that hold at all times together, so that one may look at any time."""
