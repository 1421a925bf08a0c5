"""Sends alarms to an address, in a thread of its own."""

import hashlib
import hmac
import http.client
import ipaddress
import logging
import random
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, MutableMapping
from queue import Empty, Full, Queue
from threading import Lock, Thread
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from submax.core.errors import InputError, one_line
from submax.live.monitoring.alarms.webhook_options import WebhookOptions

LOG = logging.getLogger("submax")
WEBHOOK_FAILURES = "alarms that the webhook did not take"
"""The name under which these are counted among the failures of a bandit."""
ATTEMPTS = 6
"""How often an alarm is sent before it is given up: about half a minute."""
FIRST_PAUSE_SECONDS = 1.0
"""The pause before the second attempt; each later one is twice as long, times a random factor."""
TIMEOUT_SECONDS = 5.0
"""How long connecting, sending and each part of the answer may take."""
MAX_WAITING = 100
"""Alarms that wait to be sent; further ones are dropped and counted."""
IDLE_SECONDS = 5.0
"""After so long without an alarm the thread ends."""
RETRIED = (408, 425, 429)
"""Statuses below 500 after which an alarm is sent again."""
SIGNATURE, TIMESTAMP = "X-Submax-Signature", "X-Submax-Timestamp"


class Delivery(NamedTuple):
    """An alarm on its way: the address, and the JSON to send."""

    address: str
    body: bytes


class Webhook:
    """Sends one alarm after the other; callers never wait.

    A request has the time in the header ``X-Submax-Timestamp`` and, if there is a secret, the
    HMAC-SHA256 of "time.body" in ``X-Submax-Signature: sha256=…``, by which a receiver knows the
    sender and refuses old requests. Redirections are not followed. ``failures`` counts alarms that
    were given up.
    """

    def __init__(
        self,
        failures: "MutableMapping[str, int] | Counter[str]",
        options: Callable[[], WebhookOptions] = WebhookOptions.from_environment,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._failures, self._options, self._pause = failures, options, pause
        self._waiting: Queue[Delivery] = Queue(MAX_WAITING)
        self._lock, self._running = Lock(), False

    def send(self, address: str, message: object) -> None:
        """Send a message soon, as JSON."""
        try:
            self._waiting.put_nowait(Delivery(address, msgspec.json.encode(message)))
        except Full:
            self._count("too many alarms wait to be sent")
            return
        with self._lock:
            if not self._running:
                self._running = True
                Thread(target=self._run, name="submax-webhook", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                delivery = self._waiting.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._running = False
                        return
                continue
            try:
                self.deliver(delivery)
            except Exception as error:
                self._count(one_line(error))

    def deliver(self, delivery: Delivery) -> None:
        """Send an alarm, several times if need be; count a failure if nobody takes it."""
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            try:
                status = posted(delivery, self._options())
                if 200 <= status < 300:
                    return
                reason = f"the answer has the status {status}"
                if status < 500 and status not in RETRIED:
                    break
            except InputError as error:
                reason = str(error)
                break
            except (OSError, http.client.HTTPException) as error:
                reason = f"{type(error).__name__}: {error}"
            if attempt < ATTEMPTS:
                self._pause(pause * (0.5 + random.random()))
                pause *= 2
        self._count(reason)

    def _count(self, reason: str) -> None:
        self._failures[WEBHOOK_FAILURES] = self._failures.get(WEBHOOK_FAILURES, 0) + 1
        LOG.warning("an alarm could not be sent to its webhook: %s", reason)


def posted(delivery: Delivery, options: WebhookOptions) -> int:
    """Send an alarm once, and return the status of the answer."""
    parts = urlsplit(delivery.address)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    host = parts.hostname or ""
    connection = _Connection(host, port, _checked_address(host, port, options), secure)
    stamp = str(int(time.time()))
    headers = {"Content-Type": "application/json", "User-Agent": "submax", TIMESTAMP: stamp}
    if options.secret is not None:
        headers[SIGNATURE] = f"sha256={signature(options.secret, stamp, delivery.body)}"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", path, delivery.body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def signature(secret: str, stamp: str, body: bytes) -> str:
    """The HMAC-SHA256 of a time and a body, in hexadecimal digits."""
    return hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def _checked_address(host: str, port: int, options: WebhookOptions) -> str:
    """The address of a host; an ``InputError`` if it is private and this is not allowed."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    address = str(found[0][4][0])
    if not options.private and not ipaddress.ip_address(address.partition("%")[0]).is_global:
        raise InputError(
            f"the webhook's host {host!r:.80} has the private address {address}, and only public "
            "ones are allowed: set SUBMAX_WEBHOOK_PRIVATE=1 where the server is started, if you "
            "mean it"
        )
    return address


class _Connection(http.client.HTTPConnection):
    """A connection to the address that was checked, whatever the name means a moment later."""

    def __init__(self, host: str, port: int, address: str, secure: bool) -> None:
        super().__init__(host, port, timeout=TIMEOUT_SECONDS)
        self._address, self._secure = address, secure

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), TIMEOUT_SECONDS)
        if self._secure:
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self.host)
