"""Reasons not to trust an estimate, and the numbers behind them."""
