"""Policies that look for the best arm, and do not mind what they earn on the way."""
