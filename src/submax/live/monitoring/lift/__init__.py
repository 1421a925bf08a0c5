"""How much more a bandit earns than its baseline, however often one looks."""
