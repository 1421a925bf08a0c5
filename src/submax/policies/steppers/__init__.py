"""Fast forms of policies for simulations of single decisions, see `Stepper`."""
