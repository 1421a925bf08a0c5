"""Slow, endless and very many requests, as a client sees them, with short deadlines."""

import re
import socket
import time

import pytest

from .conftest import GET, everything

SECONDS = 0.5
"""The deadlines of head and body in these tests."""
PLACES = 3


def post(path="/bandits/page/decide", body=b"{}", version="1.1", **headers) -> bytes:
    """The bytes of a request; headers that are None are left out."""
    given = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "content-length": len(body),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"{name}: {value}\r\n" for name, value in given.items() if value is not None]
    return f"POST {path} HTTP/{version}\r\n{''.join(lines)}\r\n".encode() + body


HALF = post(content_length=10)
"""A request whose body is not complete."""
CHUNKED = post(body=b"", content_length=None, transfer_encoding="chunked")


def receive(connection: socket.socket, part: bytes, times: int = 1) -> bytes:
    """What is received until a part of it has come some times."""
    received = b""
    while received.count(part) < times:
        found = connection.recv(65_536)
        assert found, f"closed after {received!r}"
        received += found
    return received


def answered(connection: socket.socket, sent: bytes) -> bool:
    """Send something, and wait for an answer that is a decision."""
    connection.sendall(sent)
    return receive(connection, b"}").startswith(b"HTTP/1.1 200")


def status(received: bytes) -> int:
    """That of the last answer; 0 if the connection was closed without one."""
    found = re.findall(rb"HTTP/1\.1 (\d+)", received)
    return int(found[-1]) if found else 0


def trickled(connection: socket.socket, piece: bytes) -> bytes:
    """Send a piece again and again until the connection is closed; all that was answered."""
    connection.settimeout(SECONDS / 10)
    received, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if not (part := connection.recv(65_536)):
                return received
            received += part
        except TimeoutError:
            connection.sendall(piece)
        except ConnectionError:
            return received
    raise AssertionError("the server waits for ever")


@pytest.mark.parametrize(
    ("sent", "piece", "expected", "reason"),
    [
        (b"", b"", 0, "head_too_slow"),
        (b"GET /healthz HTTP/1.1\r\n", b"X: y\r\n", 408, "head_too_slow"),
        (post() + b"GET /", b"x", 408, "head_too_slow"),
        (post(content_length=1000), b" ", 408, "body_too_slow"),
        # Nobody waits for this body, and there is one answer.
        (post("/nowhere", content_length=1000), b" ", 404, "body_too_slow"),
    ],
    ids=["silence", "head", "second head", "body", "body of an answered request"],
)
def test_what_comes_too_slowly_is_refused_and_closed(limited, sent, piece, expected, reason):
    server = limited(seconds=SECONDS)
    begin = time.monotonic()
    received = trickled(server.connect(sent), piece)
    assert time.monotonic() - begin >= SECONDS
    assert status(received) == expected
    assert received.count(b"HTTP/1.1") == (expected > 0) + (sent.startswith(post()))
    assert server.closed(reason) == 1


def test_a_connection_may_be_idle_longer_than_a_head_may_take(limited):
    connection = limited(seconds=SECONDS).connect()
    assert answered(connection, post())
    time.sleep(1.2 * SECONDS)
    assert answered(connection, post())


@pytest.mark.parametrize(
    "sent",
    [CHUNKED + b"1\r\n \r\n" * 5000, CHUNKED + b"1\r\n \r\n0\r\nX: " + b"y" * 30_000],
    ids=["tiny chunks", "headers after the body"],
)
def test_a_body_that_never_ends_is_refused(limited, sent):
    server = limited(most_bytes=10_000)
    assert status(server.ask(sent)) == 413
    assert server.closed("body_too_large") == 1


def test_requests_before_the_first_answer_are_limited(limited):
    server = limited()
    few = server.connect(post() * 50)
    assert receive(few, b"HTTP/1.1 200", 50)
    assert status(server.ask(post() * 1000)) == 400
    assert server.closed("pipelined") == 1


def test_silent_connections_make_room_first_and_then_those_idle_longest(limited):
    server = limited(places=PLACES)
    idle = [server.connect(), server.connect()]
    assert all(answered(one, post()) for one in idle)
    silent = server.connect()
    last = server.connect()
    assert everything(silent) == b""
    assert answered(last, post())
    assert answered(idle[0], post())
    server.connect()
    assert everything(idle[1]) == b""
    assert answered(last, post())
    assert answered(idle[0], post())


def test_connections_with_a_request_under_way_stay(limited):
    server = limited(places=PLACES)
    # The server asks for a body when it has read a head.
    waiting = post(body=b"", content_length=2, expect="100-continue")
    busy = [server.connect(waiting) for _ in range(PLACES)]
    for one in busy:
        assert receive(one, b"\r\n\r\n").startswith(b"HTTP/1.1 100")
    assert status(server.ask(b"")) == 503
    assert all(answered(one, b"{}") for one in busy)
    assert server.closed("too_many") == 1


def hold(server, key: str = "") -> int:
    """Send a head whose body does not come; the status of the answer, 100 if it is awaited."""
    sent = post(body=b"", content_length=2, authorization=key, expect="100-continue")
    return status(receive(server.connect(sent), b"\r\n\r\n"))


def test_unfinished_requests_leave_room_for_keys_and_health_checks(limited):
    """Of 20 places strangers have 16, and requests with a key 19."""
    server = limited(places=20)
    number, key = server.keys.add(["decide"])
    assert [hold(server, f"Bearer {key}") for _ in range(16)] == [100] * 16
    for stranger in ("", f"Bearer submax.{number}.wrong", "Bearer x"):
        assert hold(server, stranger) == 503
    assert [hold(server, f"bearer {key}") for _ in range(4)] == [100] * 3 + [503]
    assert answered(server.connect(), GET)
    assert hold(server) == 503


def test_without_keys_everybody_is_known(limited):
    server = limited(places=20)
    assert [hold(server) for _ in range(20)] == [100] * 19 + [503]


def test_a_wrong_key_is_refused_before_the_body_comes(limited):
    server = limited()
    server.keys.add(["decide"])
    assert status(receive(server.connect(HALF), b"\r\n\r\n")) == 401


def test_many_requests_on_one_connection_are_answered_in_order(limited):
    sent = [post(body=b'{"id": "d%d"}' % number) for number in range(30)]
    sent.insert(10, GET)
    received = receive(limited().connect(b"".join(sent)), b"}", 31)
    order = [int(number) for number in re.findall(rb'"id":"d(\d+)"', received)]
    assert order == list(range(30))
    assert received.index(b'"d9"') < received.index(b'{"status":"ok"}') < received.index(b'"d10"')


@pytest.mark.parametrize("split", [1, 40, 100, -1])
def test_a_request_in_pieces_is_answered(limited, split):
    sent = post(body=b'{"id": "d1"}')
    connection = limited().connect()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(sent[:split])
    assert answered(connection, sent[split:])
    connection.sendall(sent)
    assert b'"repeated":true' in receive(connection, b"}")


UNUSUAL = {
    "query": (post("/bandits/page/decide?x=1"), 400),
    "slash behind": (post("/bandits/page/decide/"), 404),
    "escaped letter": (post("/bandits/pag%65/decide"), 200),
    "another type": (post(content_type="text/plain"), 415),
    "no type": (post(content_type=None), 415),
    "another host": (post(host="example.org"), 403),
    "another origin": (post(origin="http://example.org"), 403),
    "closing": (post(connection="close"), 200),
    "old version": (post(version="1.0"), 200),
    "chunks": (CHUNKED + b"2\r\n{}\r\n0\r\n\r\n", 200),
    # Proxies may read two lengths in two ways, and smuggle a second request.
    "length and chunks": (post(transfer_encoding="chunked"), 400),
    "two lengths": (post(Content_Length=1), 400),
    "length that is no number": (post(content_length="x"), 400),
    "huge length": (post(content_length="9" * 99), 400),
    "wrong chunks": (CHUNKED + b"zz\r\n", 400),
    "no http": (b"\x00\xff\x16\x03\x01 nonsense\r\n\r\n", 400),
    "unknown encoding": (post(transfer_encoding="identity"), 400),
    "large body": (post(body=b" " * 100_000 + b"{}"), 200),
    "too large body": (post(body=b" " * 1_000_001), 413),
    "no utf-8": (post(body=b"\xff"), 400),
}


def test_unusual_requests_are_answered_and_dangerous_ones_refused(limited):
    server = limited(most_bytes=2_000_000)
    for kind, (sent, expected) in UNUSUAL.items():
        assert status(receive(server.connect(sent), b"\r\n\r\n")) == expected, kind
    assert answered(server.connect(), GET)
