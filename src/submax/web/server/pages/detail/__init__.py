"""Pages that look into one bandit more closely: its contexts, and single decisions."""
