"""Methods of the related work."""
