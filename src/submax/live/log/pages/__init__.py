"""Pages of a log, decoded by columns."""
