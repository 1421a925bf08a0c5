"""Policies for several items that are shown: slates with a click, and duels of two arms."""
