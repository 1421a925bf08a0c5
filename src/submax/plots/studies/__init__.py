"""Figures for papers: learning curves in a column, and mean ranks."""
