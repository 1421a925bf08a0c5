"""Who may do what: keys, their limits, and the record of changes."""
