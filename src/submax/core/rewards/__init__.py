"""Reward scales: which rewards are possible, and the levels that policies are conditioned on."""
