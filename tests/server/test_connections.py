"""The command ``serve`` holds out against hostile heads, bodies, and very many connections."""

import random
import re
import socket
import time
from contextlib import ExitStack, closing

import httpx
import pytest

from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.server.keys import Keys

KILOBYTE = 1000
GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
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


def everything(connection: socket.socket) -> bytes:
    """All that the server sends until it closes the connection; empty if it is cut off."""
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received


def status(received: bytes) -> int:
    """That of the last answer; 0 if the connection was closed without one."""
    found = re.findall(rb"HTTP/1\.[01] (\d+)", received)
    return int(found[-1]) if found else 0


class Connections:
    """Opens connections to the port of a server."""

    def __init__(self, port: int):
        self.port = port
        self._opened = ExitStack()

    def connect(self, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self._opened.enter_context(connection).sendall(sent)
        return connection

    def answer(self, sent: bytes) -> int:
        """The status of the first answer."""
        connection, received = self.connect(sent), b""
        try:
            while b"\r\n\r\n" not in received and (part := connection.recv(65_536)):
                received += part
        except ConnectionResetError:
            pass
        return status(received)

    def close(self) -> None:
        self._opened.close()


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("connections") / "page.db"
    open_bandit(path, actions=["A", "B"], background=False).close()
    return start_server(path)


@pytest.fixture
def connections(server):
    with closing(Connections(server.port)) as connections:
        yield connections


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
def test_a_head_above_the_limit_is_refused(server, connections, head, refusal):
    assert connections.answer(head) in (refusal, 431)
    assert health(server) == 200


def test_a_head_below_the_limit_is_answered_after_long_bodies(server):
    many = {"requests": [{"id": f"{number:050}"} for number in range(1000)]}
    with httpx.Client(verify=False, base_url=server.address, timeout=30) as http:
        for _ in range(2):
            assert http.post("/bandits/page/decide-many", json=many).status_code == 200
            assert http.get("/healthz", headers={"x": "y" * 30 * KILOBYTE}).status_code == 200


def test_a_huge_head_does_not_stop_the_server(server, connections):
    connection = connections.connect(b"GET / HTTP/1.1\r\nX: ")
    with pytest.raises(ConnectionError):
        connection.sendall(b"x" * 300_000 * KILOBYTE)
    assert health(server) == 200


def test_very_many_half_open_connections_do_not_stop_others(server, connections):
    with httpx.Client(verify=False, base_url=server.address, timeout=30) as kept:
        assert kept.get("/healthz").status_code == 200
        for number in range(1200):
            connections.connect(b"" if number % 2 else b"GET /healthz HTTP/1.1\r\nHost: ")
        assert health(server) == 200
        assert kept.post("/bandits/page/decide", json={}).status_code == 200


def test_very_many_unfinished_requests_stop_nobody(serve, tmp_path):
    """A request counts from when its body is complete, so they take no room of others."""
    file = tmp_path / "page.db"
    open_bandit(file, actions=["A", "B"], background=False).close()
    with closing(open_store(file)) as store:
        keys = Keys(store)
        browser = keys.add(["decide"], browser=True).key
        headers = {"authorization": f"Bearer {keys.add(['decide']).key}"}
    server = serve(file)
    with closing(Connections(server.port)) as connections:
        held = post(body=b"", content_length=14, authorization=f"Bearer {browser}")
        for _ in range(1100):
            connections.connect(held)
        assert health(server) == 200
        for sent in (headers, {"authorization": f"Bearer {browser}"}):
            decided = server.post("/bandits/page/decide", json={}, headers=sent, timeout=30)
            assert decided.status_code == 200


def test_a_wrong_key_is_refused_before_the_body_comes(serve, tmp_path):
    file = tmp_path / "page.db"
    with closing(open_store(file)) as store:
        Keys(store).add(["decide"])
    with closing(Connections(serve(file).port)) as connections:
        assert connections.answer(UNFINISHED) == 401


@pytest.mark.soak
@pytest.mark.parametrize(
    ("sent", "piece", "expected"),
    [(b"GET /healthz HTTP/1.1\r\n", b"X: y\r\n", (0, 408)), (UNFINISHED, b" ", (408,))],
    ids=["head", "body"],
)
def test_what_comes_too_slowly_is_refused_after_ten_seconds(connections, sent, piece, expected):
    connection, begin = connections.connect(sent), time.monotonic()
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


def test_many_requests_on_one_connection_are_answered_in_order(connections):
    sent = [post(body=b'{"id": "d%d"}' % number) for number in range(30)]
    sent.insert(10, GET)
    connection, received = connections.connect(b"".join(sent)), b""
    while received.count(b"}") < 31:
        received += connection.recv(65_536)
    order = [int(number) for number in re.findall(rb'"id":"d(\d+)"', received)]
    assert order == list(range(30))
    assert received.index(b'"d9"') < received.index(b'{"status":"ok"}') < received.index(b'"d10"')


UNUSUAL = {
    "query": (post("/bandits/page/decide?x=1"), 400),
    "slash behind": (post("/bandits/page/decide/"), 404),
    "another type": (post(content_type="text/plain"), 415),
    "no type": (post(content_type=None), 415),
    "another host": (post(host="example.org"), 403),
    "host that is none": (post(host="["), 400),
    "no host": (post(host=None), 400),
    "another origin": (post(origin="http://example.org"), 403),
    "origin that is none": (post(origin="http://["), 403),
    "closing": (post(connection="close"), 200),
    # nginx sends this version, if it is not told another.
    "proxy": (post(version="1.0"), 403),
    "chunks": (CHUNKED + b"2\r\n{}\r\n0\r\n\r\n", 200),
    "length that is no number": (post(content_length="x"), 400),
    "huge length": (post(content_length="9" * 99), 400),
    "wrong chunks": (CHUNKED + b"zz\r\n", 400),
    "no http": (b"\x00\xff\x16\x03\x01 nonsense\r\n\r\n", 400),
    "unknown encoding": (post(transfer_encoding="identity"), 400),
    "too large body": (post(body=b" " * 1_000_001), 413),
    "no utf-8": (post(body=b"\xff"), 400),
}


def test_unusual_requests_are_answered_and_dangerous_ones_refused(server, connections):
    answers = {kind: connections.answer(sent) for kind, (sent, _) in UNUSUAL.items()}
    assert answers == {kind: expected for kind, (_, expected) in UNUSUAL.items()}
    assert health(server) == 200


def test_heads_of_random_bytes_do_not_stop_the_server(server, seed):
    """Whole heads, not only values: names, white space, control characters and line ends."""
    rng = random.Random(seed)
    head = post(origin="http://shop.example", authorization="Bearer submax.0.0", cookie="a=b")
    head = head.replace(b"\r\n\r\n{}", b"\r\n")
    with closing(Connections(server.port)) as connections:
        for _ in range(100):
            changed = bytearray(head)
            for _ in range(rng.randint(1, 8)):
                position = rng.randrange(len(changed))
                changed[position : position + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 3))
            sent = bytes(changed) + b"Connection: close\r\n\r\n{}"
            connection = connections.connect(sent)
            connection.shutdown(socket.SHUT_WR)
            assert status(everything(connection)) < 500, sent
    assert health(server) == 200


SMUGGLED = {
    # Proxies may read two lengths in two ways, and smuggle a second request.
    "length and chunks": CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 4\r\n\r\n")
    + b"2\r\n{}\r\n0\r\n\r\n",
    "two lengths": post(Content_Length=1),
    "space before the colon": GET.replace(b"Host:", b"Host :"),
}


@pytest.mark.parametrize("kind", list(SMUGGLED))
def test_what_two_programs_may_read_in_two_ways_ends_the_connection(connections, kind):
    received = everything(
        connections.connect(
            SMUGGLED[kind] + GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        )
    )
    assert len(re.findall(rb"HTTP/1\.1 \d+", received)) <= 2
    assert b" 500 " not in received
