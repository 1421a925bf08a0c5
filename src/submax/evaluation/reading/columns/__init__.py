"""Columns of a log: their roles, and reading actions, contexts and eligible sets from them."""
