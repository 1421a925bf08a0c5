"""What is computed beside decisions: sums by time, lift, shadow policies, alarms."""
