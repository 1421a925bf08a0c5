"""The server: decisions and rewards over HTTP, with keys, limits, metrics and pages."""
