"""The operations of the interface, from which routes, description and clients are made."""
