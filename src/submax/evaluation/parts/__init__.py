"""Logs of any size: read in parts, and evaluated by sums over the parts."""
