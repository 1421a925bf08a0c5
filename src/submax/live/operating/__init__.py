"""What operators of a bandit see and change."""
