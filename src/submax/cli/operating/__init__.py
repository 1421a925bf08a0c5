"""The commands by which operators look at bandits and change them."""
