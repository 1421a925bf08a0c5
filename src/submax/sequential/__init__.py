"""Bounds of sums that hold at all times together, so one may look at any time."""
