"""Stores of events: in memory, in SQLite and in PostgreSQL."""
