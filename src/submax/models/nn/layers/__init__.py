"""Layers of networks, and how the reward enters them."""
