"""A limit on requests with wrong keys, for each address."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

MAX_FAILURES = 10
"""Requests with wrong keys that an address may send at once."""
WINDOW_SECONDS = 60.0
"""The time after which as many are allowed again."""
MAX_ADDRESSES = 10_000
"""Addresses that are remembered; beyond them the one that failed longest ago is forgotten."""


class FailedAttempts:
    """Counts requests with wrong keys for each address; the counts fall with time.

    A request with a valid key is never counted or refused. Its secret has 256 bits and cannot be
    guessed, and many clients may share the address of a proxy: if a wrong key of one of them
    locked out all of them, anybody could.

    >>> failed = FailedAttempts(clock=lambda: 0.0)
    >>> [failed.allows("192.0.2.1") for _ in range(11)].count(True)
    10
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Count a failed attempt; False if the address had too many."""
        network, now = network_of(address), self._clock()
        count, before = self._failures.pop(network, (0.0, now))
        count = max(0.0, count - (now - before) * MAX_FAILURES / WINDOW_SECONDS)
        allowed = count + 1 <= MAX_FAILURES
        self._failures[network] = (count + 1 if allowed else count, now)
        if len(self._failures) > MAX_ADDRESSES:
            self._failures.popitem(last=False)
        return allowed


def network_of(address: str) -> str:
    """The address, or the network of an IPv6 address, of which one client may have all addresses.

    >>> network_of("2001:db8::1") == network_of("2001:db8::2"), network_of("192.0.2.1")
    (True, '192.0.2.1')
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 6:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return address
