"""What pages say about single arms: which seem broken, and whose rewards come late."""
