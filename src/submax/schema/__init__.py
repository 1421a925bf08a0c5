"""Actions, contexts and rewards by name, and what is learned of them."""
