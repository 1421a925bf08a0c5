"""Loopback addresses."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a server at this host can be reached only from the same machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
