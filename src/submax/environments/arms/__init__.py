"""Environments with plain arms and no context."""
