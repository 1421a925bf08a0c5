"""Policies that are not learned by this library, and variants of those that are."""
