"""Opens files and tables as batches of rows."""
