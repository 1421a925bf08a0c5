"""The errors submax raises on purpose."""


class InvalidValue(ValueError):  # noqa: N818 - reads as what it is: the caller's value is invalid
    """A value from outside is wrong; the message is one sentence for the person who gave it."""


class MissingExtra(ImportError):  # noqa: N818 - named after what the user has to install
    """An optional dependency is not installed; the message names the extra to install."""
