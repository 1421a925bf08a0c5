"""Environments in which several items are shown in an order, and people click on some of them."""
