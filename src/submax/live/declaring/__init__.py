"""What a bandit is declared to be, and how a declaration is written down."""
