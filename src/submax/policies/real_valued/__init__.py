"""Policies for actions with real-valued parts, such as prices."""
