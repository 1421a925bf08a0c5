"""What an installation takes: its size on disk, and the time of importing it."""
