"""Tables of decisions and rewards for export."""
