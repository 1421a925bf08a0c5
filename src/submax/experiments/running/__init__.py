"""Running experiments: whole, in parts, with more replicas, or as a Python call."""
