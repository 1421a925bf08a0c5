"""Connections: how many there may be, and how much and how slowly they may send."""
