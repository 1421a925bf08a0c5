"""What a report says about the log, and about parts of it."""
