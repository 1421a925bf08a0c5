"""Moving old events from a store into its archive."""
