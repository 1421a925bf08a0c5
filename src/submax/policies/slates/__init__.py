"""Policies for slates of items in which the position of a click is known."""
