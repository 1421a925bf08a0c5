"""The command that recommends a policy."""
