"""The command ``serve`` holds out against heads without an end and very many connections."""

import time
from contextlib import closing

import httpx
import pytest

from submax.live.bandits.open import open_bandit
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server.access.key_registry import KeyRegistry

from .conftest import Connections, everything

KILOBYTE = 1000
UNFINISHED = (
    b"POST /bandits/page/decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 14\r\n\r\n"
)
# One process for all these tests, of which each leaves a server that answers.
pytestmark = pytest.mark.xdist_group("connections")


@pytest.fixture(scope="module")
def server(start_server, tmp_path_factory):
    path = tmp_path_factory.mktemp("connections") / "page.db"
    open_bandit(path, actions=["A", "B"], background=False).close()
    return start_server(path)


@pytest.fixture
def connections(server):
    connections = Connections(server.port)
    yield connections
    connections.close()


def health(server) -> int:
    return server.get("/healthz", timeout=30).status_code


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
def test_a_head_above_the_limit_is_refused_and_counted(server, connections, head):
    before = connections.closed("head_too_large")
    assert connections.ask(head).startswith(b"HTTP/1.1 431")
    assert connections.closed("head_too_large") == before + 1
    assert health(server) == 200


def test_a_head_below_the_limit_is_answered_after_long_bodies_and_other_heads(server):
    many = {"requests": [{"id": f"{number:050}"} for number in range(1000)]}
    with httpx.Client(verify=False, base_url=server.address, timeout=30) as http:
        for _ in range(3):
            assert http.post("/bandits/page/decide-many", json=many).status_code == 200
            assert http.get("/healthz", headers={"x": "y" * 30 * KILOBYTE}).status_code == 200


def test_a_huge_head_does_not_stop_the_server(server, connections):
    connection = connections.connect(b"GET / HTTP/1.1\r\nX: ")
    with pytest.raises(ConnectionError):
        connection.sendall(b"x" * 300_000 * KILOBYTE)
    assert health(server) == 200


def test_very_many_silent_connections_do_not_stop_others(server, connections):
    with httpx.Client(verify=False, base_url=server.address, timeout=30) as kept:
        assert kept.get("/healthz").status_code == 200
        oldest = connections.connect()
        for _ in range(1200):
            connections.connect()
        assert health(server) == 200
        # The oldest connection without a request goes first, and one that made a request stays.
        assert everything(oldest) == b""
        assert kept.post("/bandits/page/decide", json={}).status_code == 200


@pytest.mark.soak
@pytest.mark.parametrize("keys", [False, True])
def test_very_many_unfinished_requests_stop_neither_health_checks_nor_known_keys(
    serve, tmp_path, keys
):
    file, headers = tmp_path / "page.db", {}
    open_bandit(file, actions=["A", "B"], background=False).close()
    if keys:
        with closing(SQLiteStore(file)) as store:
            headers["authorization"] = f"Bearer {KeyRegistry(store).add(['decide'])[1]}"
    server = serve(file)
    with closing(Connections(server.port)) as connections:
        for _ in range(1200):
            connections.connect(UNFINISHED)
        assert health(server) == 200
        if keys:
            decided = server.post("/bandits/page/decide", json={}, headers=headers, timeout=30)
            assert decided.status_code == 200


@pytest.mark.soak
def test_a_head_that_comes_too_slowly_is_refused_after_ten_seconds(connections):
    connection, begin = connections.connect(b"GET /healthz HTTP/1.1\r\n"), time.monotonic()
    connection.settimeout(0.2)
    received = b""
    while not received and time.monotonic() - begin < 60:
        try:
            received = connection.recv(1000)
        except TimeoutError:
            # One header after the other: the deadline is for the whole head.
            connection.sendall(b"X: y\r\n")
    assert received.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - begin > 9
