"""The decisions of a page of a log by columns."""
