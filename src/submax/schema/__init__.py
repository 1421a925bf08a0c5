"""Named actions, contexts and rewards, and models that are learned for them."""
