"""The error of a log without a row that can be used."""

from submax.core.errors import InputError


class NoRowsError(InputError):
    """No row of a log, or of a part of it, can be used."""
