"""A port for a server that cannot choose one itself."""

import socket


def free_port() -> int:
    """A port that nobody listens on now; another program can take it before it is used."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
