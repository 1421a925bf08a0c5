"""The errors that submax raises on purpose."""

import traceback
from typing import ClassVar


class SubmaxError(Exception):
    """Base class of all errors that submax raises on purpose.

    The message is one sentence for people. Programs use the ``code``, which stays the same if the
    wording of the message changes, and the ``parameter``: the argument, setting or field that was
    refused, or None if no single one is to blame.
    """

    default_code: ClassVar[str] = "error"

    def __init__(
        self, message: str = "", *, code: str | None = None, parameter: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.parameter = parameter


class InputError(SubmaxError, ValueError):
    """A given value is not allowed. Nothing was changed."""

    default_code = "invalid-input"


class NotFoundError(InputError):
    """The requested object does not exist."""

    default_code = "not-found"


class ConflictError(InputError):
    """Another value is already stored under the same key. Nothing was changed."""

    default_code = "conflict"


class ForbiddenError(InputError):
    """The API key is missing, unknown, or does not permit the request."""

    default_code = "forbidden"


class StoreError(SubmaxError, RuntimeError):
    """The store cannot be reached now. Nothing was acknowledged, so the call can be repeated."""

    default_code = "store-unavailable"


class MissingExtraError(SubmaxError, ImportError):
    """An optional dependency is not installed. The message names the extra to install."""

    default_code = "missing-extra"


def one_line(error: BaseException) -> str:
    """Describe an error raised by foreign code in one line: its type, message and location.

    >>> one_line(ValueError("no such colour"))
    'ValueError: no such colour'
    """
    kind = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return kind
    # Frames of Python's import machinery tell nobody where the mistake is.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen importlib")
    ]
    return f"{kind} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else kind
