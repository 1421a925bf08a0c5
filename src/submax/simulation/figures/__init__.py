"""Figures of simulations."""
