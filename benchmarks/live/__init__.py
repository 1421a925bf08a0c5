"""Live bandits in one process: time, memory and disk."""
