"""What rewards can be, and the levels by which they are conditioned on."""
