"""An estimator that removes noise from actions step by step."""
