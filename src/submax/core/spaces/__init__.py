"""Action spaces: arms, choices in several slots, real-valued parts."""
