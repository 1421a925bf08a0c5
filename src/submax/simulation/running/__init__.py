"""The parts of a running simulation: the world, what is recorded, and single steps."""
