"""The dashboard: what each page shows of a bandit, and how it is rendered."""
