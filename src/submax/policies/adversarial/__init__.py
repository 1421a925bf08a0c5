"""Policies with guarantees for rewards that an adversary chooses."""
