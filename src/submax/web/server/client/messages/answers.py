"""The answers of a server, and its errors as those of the package."""

from typing import Any

import msgspec

from submax.core.decoding import known_type
from submax.core.errors import ConflictError, ForbiddenError, InputError, NotFoundError, StoreError

RETRIED = (429, 503)
"""Statuses after which the same request is sent again: too many requests, or unavailable."""
REFUSALS: dict[int, type[InputError]] = {
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
}
"""The errors that a status stands for; other statuses below 500 are an ``InputError``."""


def understood(status: int, answer: bytes, kind: Any) -> Any:
    """The answer as a value of its type, or the error that it reports."""
    if 200 <= status < 300:
        try:
            return msgspec.json.decode(answer, type=known_type(kind))
        except msgspec.DecodeError as error:
            raise StoreError(
                f"the answer is not one of a submax server ({error}): check the address"
            ) from error
    sentence, code = failure(answer)
    if status >= 500:
        raise StoreError(sentence, code=code)
    raise REFUSALS.get(status, InputError)(sentence, code=code)


def failure(answer: bytes) -> tuple[str, str | None]:
    """The sentence and the code of an error."""
    try:
        found = msgspec.json.decode(answer, type=dict[str, str])
        return found["error"], found.get("code")
    except (msgspec.DecodeError, KeyError):
        return answer[:200].decode(errors="replace"), None
