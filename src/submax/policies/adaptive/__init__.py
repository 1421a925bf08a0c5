"""The default policy, and the policies on Bayesian regressions that it is made of."""
