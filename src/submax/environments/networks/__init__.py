"""Environments whose truth is a random network."""
