"""Logs from files and tables, checked row by row."""
