"""Training of models in a process of its own, beside the one that decides."""
