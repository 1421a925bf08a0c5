"""The proxies whose header X-Forwarded-For is believed."""

import ipaddress
from collections.abc import Iterable


class TrustedProxies:
    """Finds the address of a client behind proxies, of which each appends an address to a header.

    >>> proxies = TrustedProxies(["127.0.0.1", "10.0.0.0/8"])
    >>> proxies.client_address("127.0.0.1", "198.51.100.9, 192.0.2.1, 10.0.0.3")
    '192.0.2.1'
    >>> proxies.client_address("192.0.2.7", "198.51.100.9")
    '192.0.2.7'
    """

    def __init__(self, proxies: Iterable[str] = ()) -> None:
        self._networks = [ipaddress.ip_network(one) for one in proxies]

    def client_address(self, address: str, forwarded: str) -> str:
        """The last address that no trusted proxy has.

        What stands before it in the header may have been written by anybody.
        """
        for one in reversed([*forwarded.split(","), address]):
            found = one.strip()
            if found and not self._trusts(found):
                return found
        return address

    def _trusts(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)
