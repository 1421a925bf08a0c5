"""Networks that can be trained."""
