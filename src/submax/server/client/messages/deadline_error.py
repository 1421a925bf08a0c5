"""The error of a call that took too long."""

from submax.core.errors import StoreError


class DeadlineError(StoreError):
    """The deadline of a call is over. It may be repeated with the same id."""

    default_code = "deadline"
