"""Policies for actions with real-valued parts."""
