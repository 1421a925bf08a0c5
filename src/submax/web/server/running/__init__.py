"""Options of the server process, and how the process ends."""
