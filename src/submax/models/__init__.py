"""Models that policies learn: networks, Bayesian regressions, classifiers of other libraries."""
