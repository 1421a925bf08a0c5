"""Commands of studies: listings, comparisons, and figures for papers."""
