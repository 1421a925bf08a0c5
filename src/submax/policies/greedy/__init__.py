"""Policies that take the best action by what they know, and sharper variants of other policies."""
