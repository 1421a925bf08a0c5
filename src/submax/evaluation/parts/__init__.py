"""Logs of any size: read in parts, and evaluated by sums over the parts."""

from submax.core.optional import require_extra

require_extra("logs", "reading a log", "pyarrow")
