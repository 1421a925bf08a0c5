"""The experiments, claims and figures of the paper."""
