"""Simulation: a policy in an environment, with delay, over replicas; and sweeps of many."""
