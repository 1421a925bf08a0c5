"""The errors submax raises on purpose, and the words for those of others."""

import traceback


class InvalidValue(ValueError):  # noqa: N818 - reads as what it is: the caller's value is invalid
    """A value from outside is wrong; the message is one sentence for the person who gave it."""


class Unknown(InvalidValue):
    """What was asked for does not exist."""


class Conflict(InvalidValue):
    """Another value already stands under the same key; nothing was changed."""


class Forbidden(InvalidValue):
    """The key is missing, unknown, or does not allow this."""


class StoreUnavailable(RuntimeError):  # noqa: N818 - says what is the case
    """The store cannot do it now; nothing was acknowledged, and it can be tried again."""


class MissingExtra(ImportError):  # noqa: N818 - named after what the user has to install
    """An optional dependency is not installed; the message names the extra to install."""


def told(error: BaseException) -> str:
    """An error of someone else's code in one line: what it was, and where it came from."""
    kind = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return kind
    frames = traceback.extract_tb(error.__traceback__)
    return f"{kind} ({frames[-1].filename}, line {frames[-1].lineno})" if frames else kind
