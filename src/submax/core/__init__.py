"""Contracts, records, checks and numerical functions that every other part of submax uses."""
