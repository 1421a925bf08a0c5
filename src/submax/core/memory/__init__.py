"""Feedback that is kept, and how it is drawn for training."""
