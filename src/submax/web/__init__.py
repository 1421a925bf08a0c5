"""What is served over HTTP: live decisions, result folders, and their pages."""
