"""Evaluation of logs."""
