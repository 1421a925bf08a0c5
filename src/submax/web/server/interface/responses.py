"""Answers to requests that failed, as HTTP responses."""

import msgspec
from starlette.responses import Response

from submax.web.server.interface.answers import Failure

JSON = "application/json"
MAX_ERROR_LENGTH = 500
"""Characters of an error message; longer ones, which may repeat a whole request, are cut."""
CODES = {
    400: "invalid-input",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "too-slow",
    413: "too-large",
    415: "not-json",
    429: "too-many-requests",
    431: "too-large",
    500: "defect",
    503: "unavailable",
}
"""The error codes of answers that do not come from an error of the package, by status."""
ENCODER = msgspec.json.Encoder()


def failure(
    status: int,
    sentence: str,
    headers: dict[str, str] | None = None,
    code: str | None = None,
) -> Response:
    """The answer to a request that failed."""
    return Response(failure_body(status, sentence, code), status, headers, media_type=JSON)


def failure_body(status: int, sentence: str, code: str | None = None) -> bytes:
    """The body of the answer to a request that failed; a long sentence is cut."""
    if len(sentence) > MAX_ERROR_LENGTH:
        sentence = f"{sentence[: MAX_ERROR_LENGTH - 3]}..."
    return ENCODER.encode(Failure(sentence, code or CODES.get(status, "invalid-input")))
