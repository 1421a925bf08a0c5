"""Environments in which several items are shown: lists with clicks, and duels of two arms."""
