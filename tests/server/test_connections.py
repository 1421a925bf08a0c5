"""The command ``serve`` holds out against hostile heads, bodies, and very many connections."""

import re
import socket
import time
from contextlib import ExitStack, closing, suppress

import httpx
import pytest

from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.server.keys import Keys

KILOBYTE = 1000
# One process for all these tests, of which each leaves a server that answers.
pytestmark = pytest.mark.xdist_group("connections")


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


UNFINISHED = post(body=b"", content_length=14)
CHUNKED = post(body=b"", content_length=None, transfer_encoding="chunked")


def status(received: bytes) -> int:
    """That of the last answer; 0 if the connection was closed without one."""
    found = re.findall(rb"HTTP/1\.[01] (\d+)", received)
    return int(found[-1]) if found else 0


def answer(connection: socket.socket) -> int:
    """The status of the first answer."""
    received = b""
    with suppress(ConnectionResetError):
        while b"\r\n\r\n" not in received and (part := connection.recv(65_536)):
            received += part
    return status(received)


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("connections") / "page.db"
    open_bandit(path, actions=["A", "B"], background=False).close()
    return start_server(path)


@pytest.fixture
def connect():
    """Connects to a server, and sends it something."""
    with ExitStack() as opened:

        def connect(server, sent):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            opened.enter_context(connection).sendall(sent)
            return connection

        yield connect


def health(server) -> int:
    return server.get("/healthz", timeout=30).status_code


@pytest.mark.parametrize(
    ("head", "refusal"),
    [
        (b"GET /healthz?%s HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * 400 * KILOBYTE), 414),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n" % (b"x" * 400 * KILOBYTE), 431),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\n%s\r\n" % (b"X: y\r\n" * 7 * KILOBYTE), 431),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\n%s" % (b"X" * 400 * KILOBYTE), 431),
    ],
    ids=["long line", "long header", "many headers", "no end"],
)
def test_a_head_above_the_limit_is_refused(server, connect, head, refusal):
    assert answer(connect(server, head)) in (refusal, 431)
    assert health(server) == 200


def test_very_many_half_open_connections_do_not_stop_others(server, connect):
    with httpx.Client(verify=False, base_url=server.address, timeout=30) as kept:
        assert kept.get("/healthz").status_code == 200
        for number in range(1200):
            connect(server, b"" if number % 2 else b"GET /healthz HTTP/1.1\r\nHost: ")
        assert health(server) == 200
        assert kept.post("/bandits/page/decide", json={}).status_code == 200


def test_a_wrong_key_is_refused_before_the_body_comes(serve, connect, tmp_path):
    file = tmp_path / "page.db"
    with closing(open_store(file)) as store:
        Keys(store).add(["decide"])
    assert answer(connect(serve(file), UNFINISHED)) == 401


@pytest.mark.soak
@pytest.mark.parametrize(
    ("sent", "piece", "expected"),
    [(b"GET /healthz HTTP/1.1\r\n", b"X: y\r\n", (0, 408)), (UNFINISHED, b" ", (408,))],
    ids=["head", "body"],
)
def test_what_comes_too_slowly_is_refused_after_ten_seconds(server, connect, sent, piece, expected):
    connection, begin = connect(server, sent), time.monotonic()
    connection.settimeout(1.0)
    received = b""
    while time.monotonic() - begin < 60:
        try:
            received = connection.recv(1000)
            break
        except TimeoutError:
            # One piece after the other: the deadline is for the whole.
            connection.sendall(piece)
        except ConnectionError:
            break
    assert status(received) in expected
    assert 9 < time.monotonic() - begin < 30


UNUSUAL = {
    "another host": (post(host="example.org"), 403),
    "host that is none": (post(host="["), 400),
    "no host": (post(host=None), 400),
    "origin that is none": (post(origin="http://["), 403),
    # nginx sends this version, if it is not told another.
    "proxy": (post(version="1.0"), 403),
    "chunks": (CHUNKED + b"2\r\n{}\r\n0\r\n\r\n", 200),
    "length that is no number": (post(content_length="x"), 400),
    "huge length": (post(content_length="9" * 99), 400),
    "wrong chunks": (CHUNKED + b"zz\r\n", 400),
    "no http": (b"\x00\xff\x16\x03\x01 nonsense\r\n\r\n", 400),
}


def test_unusual_requests_are_answered_and_dangerous_ones_refused(server, connect):
    answers = {kind: answer(connect(server, sent)) for kind, (sent, _) in UNUSUAL.items()}
    assert answers == {kind: expected for kind, (_, expected) in UNUSUAL.items()}
    assert health(server) == 200
