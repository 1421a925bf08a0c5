"""What a store in PostgreSQL consists of."""
