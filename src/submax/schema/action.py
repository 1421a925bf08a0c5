"""The form in which callers give and get an action."""

Action = str | dict[str, str | float]
"""The name of an arm, or the chosen value of every slot and range by its name."""
