"""Sends requests from threads, and repeats those that fail on their way."""

import http.client
import time
from typing import Any

from submax.web.server.client.connecting.connection_pool import ConnectionPool
from submax.web.server.client.messages.address import Address
from submax.web.server.client.messages.answers import RETRIED, failure, understood
from submax.web.server.client.messages.call import Call
from submax.web.server.client.messages.options import ClientOptions


class Caller:
    """Makes calls at one address, on connections that stay open."""

    def __init__(self, address: Address, options: ClientOptions) -> None:
        self._address, self._options = address, options
        self._pool = ConnectionPool(address)

    def call(self, call: Call) -> Any:
        """Make a call, and return its answer or raise the error that it reports."""
        attempts = self._options.attempts_for(self._address, call)
        while True:
            try:
                status, answer = self._pool.exchange(
                    call.method, call.path, call.body, attempts.begin()
                )
                if status not in RETRIED:
                    return understood(status, answer, call.kind)
                reason, _ = failure(answer)
            except (OSError, http.client.HTTPException) as error:
                reason = f"{type(error).__name__}: {str(error) or 'timed out'}"
            time.sleep(attempts.pause_after(reason))

    def close(self) -> None:
        """Close all idle connections; the next call opens a new one."""
        self._pool.close()
