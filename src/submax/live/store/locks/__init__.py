"""Locks that keep a second writing process out."""
