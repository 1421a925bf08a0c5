"""A small server on this machine whose pages show result folders, also those of runs under way."""
