"""Small frequent requests: the same bytes as through ASGI, and the same limits."""

import json
import re
import socket
from functools import partial
from threading import Thread

import pytest
import uvicorn

from submax.live.bandits.open import open_bandit
from submax.live.store.memory_store import MemoryStore
from submax.web.server.app import make_app, quick_endpoints
from submax.web.server.connections.admission import Admission
from submax.web.server.connections.connection_table import ConnectionTable
from submax.web.server.connections.quick_protocol import SMALL_BODY, QuickProtocol
from submax.web.server.interface.request_pipeline import RequestPipeline
from submax.web.server.metrics import Metrics
from submax.web.server.service import Service

CONTEXT = {"age": 1.0}


class Running:
    """A server in a thread, with or without quick answers."""

    def __init__(self, service, quick, places=100):
        self.metrics = Metrics(service.opened)
        pipeline = RequestPipeline(service, 1e6, self.metrics)
        app = make_app(service, pipeline=pipeline)
        self.admission = Admission(
            app, service.keys, places, lambda: self.metrics.count("none", 503)
        )
        self.quick = []
        endpoints = {
            name: self._noted(name, endpoint)
            for name, endpoint in quick_endpoints(pipeline).items()
            if quick
        }
        protocol = partial(
            QuickProtocol,
            table=ConnectionTable(places, self.metrics.count_closed),
            endpoints=endpoints,
            admission=self.admission,
        )
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(
            self.admission, http=protocol, log_config=None, date_header=False, server_header=False
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=partial(self._server.run, sockets=[listening]))
        self._thread.start()

    def _noted(self, name, endpoint):
        async def answer(request):
            self.quick.append(name)
            return await endpoint(request)

        return answer

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def close(self):
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def running(trial, eventually):
    opened = []

    def running(store, quick=True, **options):
        service = Service(store, trial)
        server = Running(service, quick, **options)
        opened.append(server)
        eventually(lambda: service.ready)
        return server

    yield running
    for server in opened:
        server.close()


def new_store(**options):
    store = MemoryStore(clock=lambda: 1e9)
    open_bandit(
        store,
        name="page",
        actions=["A"],
        background=False,
        **{"context": {"age": float}, **options},
    )
    return store


def request(path, body, method="POST", **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "content-length": str(len(data)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value is not None)
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + data


def answer(connection, sent):
    """Send bytes, and return one whole answer."""
    connection.sendall(sent)
    return received(connection)


def received(connection):
    data = b""
    while (found := re.search(rb"content-length: (\d+)\r\n(?s:.*?)\r\n\r\n", data)) is None:
        data += read(connection)
    while len(data) < found.end() + int(found[1]):
        data += read(connection)
    return data


def read(connection):
    part = connection.recv(100_000)
    assert part, "the connection was closed"
    return part


DECIDE, REWARD = "/bandits/page/decide", "/bandits/page/reward"
REQUESTS = [
    request(DECIDE, {"id": "d1", "context": CONTEXT}),
    request(DECIDE, {"id": "d1", "context": CONTEXT}),
    request(
        f"{DECIDE}-many", {"requests": [{"id": f"m{i}", "context": CONTEXT} for i in range(5)]}
    ),
    request(REWARD, {"id": "d1", "value": 1.0}),
    request(REWARD, {"id": "d1", "value": 0.0}),
    request(REWARD, {"id": "nobody", "value": 1.0}),
    request(f"{REWARD}-many", {"rewards": [{"id": "m1", "value": 1.0}, {"id": "m1", "value": 0}]}),
    request(REWARD, {"id": "m2", "value": 7.5}),
    request(DECIDE, {"id": "d2"}),
    request(DECIDE, {"id": "d2", "context": {"age": "old"}}),
    request(DECIDE, {"id": "d2", "context": CONTEXT, "eligible": ["Z"]}),
    request(DECIDE, {"id": "with space", "context": CONTEXT}),
    request(DECIDE, {"unknown": 1}),
    request(DECIDE, b""),
    request(DECIDE, b"not json"),
    request(DECIDE, b'{"id": "a", "id": "b"}'),
    request(DECIDE, b'{"id": "a", "context": {"age": 1, "age": 2}}'),
    request(DECIDE, b"[" * 30),
    request(DECIDE, b"\xff"),
    request(f"{DECIDE}-many", {"requests": []}),
    request("/bandits/nobody/decide", {}),
    request("/bandits/page/decide?x=1", {"id": "d3", "context": CONTEXT}),
    request("/bandits/page/decide?key=k", {"id": "d3", "context": CONTEXT}),
    request("/bandits/page/decide/", {}),
    request("/bandits/pag%65/decide", {"id": "d4", "context": CONTEXT}),
    request(DECIDE, {}, method="GET"),
    request(DECIDE, {}, content_type="text/plain"),
    request(DECIDE, {}, content_type=None),
    request(DECIDE, {}, host="example.org"),
    request(DECIDE, {}, origin="http://example.org"),
    request(DECIDE, {"id": "d5", "context": CONTEXT}, connection="close"),
    request(DECIDE, {"id": "d6", "context": CONTEXT}).replace(b"HTTP/1.1", b"HTTP/1.0"),
    request(DECIDE, {"id": "d7", "context": CONTEXT}, expect="100-continue"),
    request(DECIDE, b"2\r\n{}\r\n0\r\n\r\n", content_length=None, transfer_encoding="chunked"),
    request(DECIDE, {}, transfer_encoding="identity"),
    request(DECIDE, {}, transfer_encoding="chunked"),
    request(DECIDE, b" " * SMALL_BODY + b"{}"),
    request(DECIDE, b" " * 1_000_001),
]
QUICK_AT_LEAST = 20
"""How many of these are answered without ASGI."""


def answers(server):
    """The bytes of all answers, each on a connection of its own."""
    found = []
    for sent in REQUESTS:
        with server.connect() as connection:
            found.append(answer(connection, sent))
    return found


def test_quick_answers_are_the_same_bytes(running):
    quick, slow = running(new_store()), running(new_store(), quick=False)
    for sent, one, other in zip(REQUESTS, answers(quick), answers(slow), strict=True):
        assert one == other, sent[:200]
    assert len(quick.quick) >= QUICK_AT_LEAST
    assert not slow.quick
    statuses = [one.split()[1] for one in answers(quick)]
    assert {b"200", b"400", b"403", b"404", b"405", b"409", b"413", b"415"} <= set(statuses)


def test_with_keys_quick_answers_are_the_same_bytes(running):
    found = []
    for quick in (True, False):
        store = new_store()
        server = running(store, quick)
        keys = server.admission._keys
        _, deciding = keys.add(["decide"])
        _, elsewhere = keys.add(["decide"], bandits=["other"])
        _, slow = keys.add(["decide"], rate=0.5)
        given = [None, "Basic x", "Bearer", f"Bearer {deciding}", f"bearer {deciding}"]
        given += [f"Bearer {elsewhere}", f"Bearer {slow}", f"Bearer {slow}"]
        given += [f"Bearer {deciding}x"] * 12
        body = {"id": "d1", "context": CONTEXT}
        with server.connect() as connection:
            found.append(
                [answer(connection, request(DECIDE, body, authorization=one)) for one in given]
            )
        assert len(server.quick) == (len(given) if quick else 0)
    assert found[0] == found[1]
    assert {one.split()[1] for one in found[0]} == {b"200", b"401", b"403", b"429"}


def test_many_requests_on_one_connection_are_answered_in_order(running):
    server = running(new_store())
    sent = [request(DECIDE, {"id": f"d{number}", "context": CONTEXT}) for number in range(30)]
    sent.insert(10, request("/healthz", b"", method="GET"))
    with server.connect() as connection:
        connection.sendall(b"".join(sent))
        data = b""
        while data.count(b"HTTP/1.1 200") < len(sent) or not data.endswith(b"}"):
            data += read(connection)
    found = [int(number) for number in re.findall(rb'"id":"d(\d+)"', data)]
    assert found == list(range(30))
    assert data.index(b'"d9"') < data.index(b'{"status":"ok"}') < data.index(b'"d10"')


@pytest.mark.parametrize("split", [1, 40, 150, -1])
def test_a_request_in_pieces_is_answered(running, split):
    server = running(new_store())
    sent = request(DECIDE, {"id": "d1", "context": CONTEXT})
    with server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(sent[:split])
        connection.sendall(sent[split:])
        assert received(connection).startswith(b"HTTP/1.1 200")
        assert b'"repeated":true' in answer(connection, sent)


def test_a_wrong_key_is_refused_before_the_body_comes(running):
    server = running(new_store())
    server.admission._keys.add(["decide"])
    with server.connect() as connection:
        head = request(DECIDE, b"").replace(b"content-length: 0", b"content-length: 10")
        assert answer(connection, head).startswith(b"HTTP/1.1 401")


def test_quick_requests_count_as_under_way(running):
    server = running(new_store(), places=10)
    for _ in range(10):
        assert server.admission.enter("")
    with server.connect() as connection:
        found = answer(connection, request(DECIDE, {"context": CONTEXT}))
        assert found.startswith(b"HTTP/1.1 503")
        assert b"connection: close" in found
        assert connection.recv(1) == b""
    for _ in range(10):
        server.admission.leave()
    with server.connect() as connection:
        assert answer(connection, request(DECIDE, {"context": CONTEXT})).startswith(b"HTTP/1.1 200")
    assert server.admission.enter("")
