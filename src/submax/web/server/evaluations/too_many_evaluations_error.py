"""The error of an evaluation that must wait for another one."""

from submax.core.errors import InputError


class TooManyEvaluationsError(InputError):
    """As many evaluations as are allowed at a time are under way."""

    default_code = "too-many-requests"
