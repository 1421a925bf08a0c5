"""Opens the socket on which a server listens."""

import socket

from submax.core.errors import InputError

BACKLOG = 2048
"""Connections that wait to be accepted, so that a burst of clients is not refused."""


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at the address; an error if the address is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # From here on clients can connect and wait, and no other process can take the port.
        listening.listen(BACKLOG)
    except (OSError, UnicodeError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot listen on {host}:{port}: {reason}; give another --port or --host"
        ) from error
    return listening
