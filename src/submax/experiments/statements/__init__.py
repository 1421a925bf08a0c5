"""The statements of the paper, and code that checks them against the results of a sweep."""
