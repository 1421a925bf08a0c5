"""Policies on linear regressions, of arms and of joint choices."""
