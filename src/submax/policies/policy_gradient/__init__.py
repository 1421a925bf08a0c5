"""Policy networks that are trained on logged decisions."""
