"""Background work: functions that are called again and again in a few threads."""
