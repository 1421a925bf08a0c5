"""The version of submax, in one place."""

__version__ = "1.0.0rc2"
