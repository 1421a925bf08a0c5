"""What an estimator and a strategy must do, and how conditioned probabilities are mixed."""
