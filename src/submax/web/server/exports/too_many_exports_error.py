"""The error of an export that must wait for others."""

from submax.core.errors import InputError


class TooManyExportsError(InputError):
    """As many exports as are allowed at a time are being written."""

    default_code = "too-many-requests"
