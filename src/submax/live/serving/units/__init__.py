"""Decisions for units, such as visitors: the same unit gets the same answer for a while."""
