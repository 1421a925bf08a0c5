"""How commands run experiments: their options, the progress bar, and the printed tables."""
