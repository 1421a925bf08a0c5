"""The version of submax, in one place."""

__version__ = "0.5.0"
