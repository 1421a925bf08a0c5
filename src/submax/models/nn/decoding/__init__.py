"""Evaluation of trained networks on an accelerator."""
