"""Logs from files and tables, checked row by row."""

from submax.core.optional import require_extra

require_extra("logs", "reading a log", "pyarrow")
