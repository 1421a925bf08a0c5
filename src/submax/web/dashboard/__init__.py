"""Pages that show what bandits and experiments do, rendered from plain data."""
