"""The bandit: opening, deciding, learning, saving and showing it."""
