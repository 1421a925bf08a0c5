"""The warning that a guard rail has no effect."""


class GuardRailWarning(UserWarning):
    """A choice was paused or retired that is the control or the baseline."""
