"""Environments whose mean reward is a linear or logistic function of context or features."""
