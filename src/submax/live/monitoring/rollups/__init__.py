"""Sums of decisions and rewards by time, from which pages and reports are drawn."""
