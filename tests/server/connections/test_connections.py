"""Connections that hold the server up: endless heads, slow heads and bodies, and very many."""

import socket
import time
from functools import partial

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from submax.live.bandits.open import open_bandit
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server.access.key_registry import KeyRegistry

KILOBYTE = 1000
DECIDE = (
    b"POST /bandits/page/decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 14\r\n\r\n"
)


# One process for all these tests, of which each leaves a server that answers.
pytestmark = pytest.mark.xdist_group("connections")


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("connections") / "page.db"
    open_bandit(path, actions=["A", "B"], background=False).close()
    server = start_server(path)
    server.wait_ready()
    return server


@pytest.fixture
def connect_to():
    """Open a connection to a server; all are closed at the end."""
    opened = []

    def connect_to(server, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        opened.append(connection)
        connection.sendall(sent)
        return connection

    yield connect_to
    for connection in opened:
        connection.close()


@pytest.fixture
def connect(server, connect_to):
    return partial(connect_to, server)


def answer(connection: socket.socket) -> bytes:
    """All that the server sends until it closes the connection; empty if it is cut off."""
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received


def status(received: bytes) -> int:
    return int(received.split(b" ", 2)[1]) if received else 0


def health(server, seconds: float = 3.0) -> int:
    try:
        return server.get("/healthz", timeout=seconds).status_code
    except httpx.TransportError:
        return 0


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz?%s HTTP/1.1\r\nHost: a\r\n\r\n" % (b"x" * 40 * KILOBYTE),
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n" % (b"x" * 40 * KILOBYTE),
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n%s\r\n" % (b"X: y\r\n" * 7 * KILOBYTE),
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n%s" % (b"X" * 40 * KILOBYTE),
    ],
    ids=["long line", "long header", "many headers", "no end"],
)
def test_a_head_above_the_limit_is_refused(server, connect, head):
    received = answer(connect(head))
    assert status(received) == 431
    assert b"32,000 bytes" in received
    assert health(server) == 200


def test_a_head_below_the_limit_is_answered(server):
    headers = {"x-long": "x" * 30 * KILOBYTE}
    assert server.get("/healthz", headers=headers).status_code == 200


def test_a_long_body_and_a_second_request_do_not_count_as_head(server):
    many = {"requests": [{"id": f"{number:050}"} for number in range(1000)]}
    with httpx.Client(verify=False, base_url=server.address) as http:
        for _ in range(3):
            assert http.post("/bandits/page/decide-many", json=many).status_code == 200
            assert http.get("/healthz", headers={"x": "y" * 20 * KILOBYTE}).status_code == 200


def test_two_requests_sent_at_once_are_both_answered(connect):
    one = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    last = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    assert answer(connect(one + last)).count(b"HTTP/1.1 200") == 2


def test_a_huge_head_does_not_stop_the_server(server, connect):
    connection, begin = connect(b"GET / HTTP/1.1\r\nX: "), time.monotonic()
    with pytest.raises(OSError, match=r"reset|pipe|timed out"):
        connection.sendall(b"x" * 300_000 * KILOBYTE)
    assert health(server, 5) == 200
    assert time.monotonic() - begin < 15


def test_a_head_that_comes_too_slowly_is_refused(connect):
    connection, begin = connect(b"GET /healthz HTTP/1.1\r\n"), time.monotonic()
    connection.settimeout(0.2)
    received = b""
    while not received and time.monotonic() - begin < 15:
        try:
            received = connection.recv(1000)
        except TimeoutError:
            # One header after the other: the deadline is for the whole head.
            connection.sendall(b"X: y\r\n")
    assert status(received) == 408
    assert 9 < time.monotonic() - begin < 14


def test_very_many_silent_connections_do_not_stop_health_checks(server, connect):
    kept = httpx.Client(verify=False, base_url=server.address, timeout=3)
    assert kept.get("/healthz").status_code == 200
    oldest = connect()
    for _ in range(1200):
        connect()
    assert health(server) == 200
    # The oldest connection without a request goes first, and one that made a request stays.
    assert answer(oldest) == b""
    assert kept.post("/bandits/page/decide", json={}).status_code == 200
    kept.close()


def test_very_many_unfinished_requests_do_not_stop_health_checks(server, connect):
    for _ in range(1200):
        connect(DECIDE)
    assert health(server) == 200


def test_very_many_unfinished_requests_do_not_stop_known_keys(serve, connect_to, tmp_path):
    open_bandit(tmp_path / "keys.db", actions=["A", "B"], name="page", background=False).close()
    store = SQLiteStore(tmp_path / "keys.db")
    _, key = KeyRegistry(store).add(["decide"])
    store.close()
    server = serve(tmp_path / "keys.db")
    server.wait_ready()
    for _ in range(1200):
        connect_to(server, DECIDE)
    headers = {"authorization": f"Bearer {key}"}
    answered = server.post("/bandits/page/decide", json={}, headers=headers, timeout=3)
    assert answered.status_code == 200


def closed_for_their_heads(server) -> float:
    text = server.get("/metrics").text
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "submax_connections_closed_total"
        and sample.labels["reason"] == "head_too_large"
    )


def test_connections_that_were_closed_are_counted(server, connect):
    before = closed_for_their_heads(server)
    assert status(answer(connect(b"GET / HTTP/1.1\r\nX: %s" % (b"x" * 40 * KILOBYTE)))) == 431
    assert closed_for_their_heads(server) == before + 1
