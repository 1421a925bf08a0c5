"""Policies on linear regressions of the reward, for plain arms and for joint choices."""
