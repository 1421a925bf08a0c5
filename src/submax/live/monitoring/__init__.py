"""What is computed beside decisions: sums by time and alarms."""
