"""How fast policies decide and learn, without a store."""
