"""What policies would have earned, and how far the numbers can be trusted."""
