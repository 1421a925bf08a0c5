"""Trained networks as plain arrays, evaluated in numpy."""
