"""Environments with contexts: random networks, a moving optimum, and prices."""
