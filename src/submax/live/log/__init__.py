"""Reading the log of a bandit: which decisions have matured, and with which reward."""
