"""How events are written into the rows of a SQLite file."""
