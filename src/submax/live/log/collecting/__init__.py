"""What is known about decisions that have not matured."""
