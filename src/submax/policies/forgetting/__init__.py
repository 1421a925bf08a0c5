"""Policies for arms whose rewards change: old feedback counts less, or not at all."""
