"""Spaces of actions: arms, choices in several slots, real-valued parts."""
