"""Environments made of tables that were measured or labelled."""
