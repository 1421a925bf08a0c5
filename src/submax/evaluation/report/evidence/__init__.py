"""What a log says about each policy, as the numbers that estimators need."""
