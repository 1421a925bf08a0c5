"""Decisions between two versions."""
