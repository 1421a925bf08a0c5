"""Why statements of the paper do not hold in our results, as far as we know."""

REASONS: dict[str, str] = {}
"""By the text of a statement. The reason is printed if the statement does not hold."""
