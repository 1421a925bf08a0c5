"""Delays that are drawn for every single decision."""
