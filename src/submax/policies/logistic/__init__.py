"""Policies with a logistic regression of the reward for every action."""
