"""Environments with plain arms whose truth changes with time."""
