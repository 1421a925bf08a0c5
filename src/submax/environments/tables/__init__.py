"""Environments made from tables of data: labelled rows, or measured designs."""
