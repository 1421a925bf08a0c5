"""What the paper says, put to the test on results."""
