"""A bandit that decides, receives rewards and learns from them."""
