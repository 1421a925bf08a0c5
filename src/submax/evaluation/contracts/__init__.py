"""What an off-policy estimator gets (evidence), returns (terms) and promises."""
