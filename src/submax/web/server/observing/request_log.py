"""Writes requests to the log."""

import logging

import msgspec
from starlette.responses import Response

from submax.web.server.access.rate_limit import RateLimit
from submax.web.server.observing.request_context import RequestContext

LOG = logging.getLogger("submax.requests")
REFUSALS_A_SECOND = 10.0
"""Refused requests logged in a second: somebody who sends nonsense must not fill the disk."""


class RequestLog:
    """Logs every failure of the server, some refused requests, and with level debug all requests.

    The level is error from status 500 on, info for other refused requests, else debug.
    """

    def __init__(self) -> None:
        self._limit = RateLimit()
        self._left_out = 0

    def write(self, context: RequestContext, response: Response, seconds: float) -> None:
        """Log an answered request, if it is one to be logged."""
        status = response.status_code
        if status < 400:
            if LOG.isEnabledFor(logging.DEBUG):
                self._log(logging.DEBUG, context, response, seconds)
        elif status >= 500:
            self._log(logging.ERROR, context, response, seconds)
        elif LOG.isEnabledFor(logging.INFO):
            self._log_refusal(context, response, seconds)

    def _log_refusal(self, context: RequestContext, response: Response, seconds: float) -> None:
        if not self._limit.allows("refusals", REFUSALS_A_SECOND):
            self._left_out += 1
            return
        self._log(logging.INFO, context, response, seconds)
        if self._left_out:
            LOG.info("%s refused requests before this one were not logged", self._left_out)
            self._left_out = 0

    def _log(self, level: int, context: RequestContext, response: Response, seconds: float) -> None:
        fields = {
            "request_id": context.identifier,
            "bandit": context.bandit,
            "operation": context.operation,
            "status": response.status_code,
            "duration_ms": round(1000 * seconds, 3),
        }
        message = f"{context.operation} was answered with {response.status_code}"
        if response.status_code >= 400:
            code, sentence = _failure(response)
            fields["code"] = code
            message += f": {sentence}"
        LOG.log(level, "%s", message, extra={"event": "request", "fields": fields})


def _failure(response: Response) -> tuple[str, str]:
    """The code and the sentence of an error."""
    try:
        found = msgspec.json.decode(response.body, type=dict[str, str])
        return found["code"], found["error"]
    except (msgspec.DecodeError, KeyError):
        return "", ""
