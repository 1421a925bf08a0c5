"""Policies on a value network whose uncertainty is learned from its residuals."""
