"""Research: the paper, its rivals, and what lies beyond; `submax reproduce` runs it."""
