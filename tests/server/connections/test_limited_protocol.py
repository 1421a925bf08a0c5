"""Connections with short deadlines and few places, in front of an application that waits."""

import asyncio
import socket
import time
from dataclasses import replace
from functools import partial
from threading import Thread

import pytest
import uvicorn

from submax.web.server.connections import limited_protocol
from submax.web.server.connections.connection_table import ConnectionTable
from submax.web.server.connections.limited_protocol import LimitedProtocol

SECONDS = 0.5
"""The deadlines of head and body in these tests."""
PLACES = 3
POST = b"POST /%s HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
CHUNKED = b"POST /%s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


async def application(scope, receive, send):
    """Read the body, unless the path says not to, and answer with its length."""
    size, more = 0, scope["path"] != "/at-once"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    body = b"%d" % size
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Running:
    """A server in a thread of this process, and the reasons for which it closed connections."""

    def __init__(self):
        self.reasons = []
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        table = ConnectionTable(PLACES, self.reasons.append)
        config = uvicorn.Config(
            application, http=partial(LimitedProtocol, table=table), lifespan="off", log_config=None
        )
        self._server = uvicorn.Server(config)
        self._opened = []
        run = partial(asyncio.run, self._server.serve(sockets=[listening]))
        self._thread = Thread(target=run)
        self._thread.start()

    def connect(self, sent=b""):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        self._opened.append(connection)
        connection.sendall(sent)
        return connection

    def close(self):
        for connection in self._opened:
            connection.close()
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def running(monkeypatch):
    yield from serving(monkeypatch, SECONDS)


@pytest.fixture
def patient(monkeypatch):
    """A server whose deadlines do not pass during a test."""
    yield from serving(monkeypatch, 60)


def serving(monkeypatch, seconds: float):
    for name in ("HEAD", "BODY"):
        phase = replace(getattr(limited_protocol, name), seconds=seconds, most_bytes=10_000)
        monkeypatch.setattr(limited_protocol, name, phase)
    running = Running()
    yield running
    running.close()


def answered(connection):
    """Whether the next answer is that to a body of five bytes."""
    received = b""
    while not received.endswith(b"\r\n\r\n5") and (part := connection.recv(65_536)):
        received += part
    return received.startswith(b"HTTP/1.1 200") and received.endswith(b"5")


def everything(connection):
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received


def test_a_connection_without_a_request_is_closed_without_an_answer(running):
    begin = time.monotonic()
    assert everything(running.connect()) == b""
    assert time.monotonic() - begin >= SECONDS
    assert running.reasons == ["head_too_slow"]


def test_an_unfinished_head_is_answered_and_closed(running):
    assert everything(running.connect(b"GET / HTTP")).startswith(b"HTTP/1.1 408")


def test_an_unfinished_second_head_is_answered_and_closed(running):
    connection = running.connect(POST % b"" + b"12345")
    assert answered(connection)
    # A connection may be idle between requests for longer than a head may take.
    time.sleep(2 * SECONDS)
    connection.sendall(b"GET /")
    assert everything(connection).startswith(b"HTTP/1.1 408")


def test_a_slow_body_is_answered_and_closed(running):
    begin = time.monotonic()
    connection = running.connect(POST % b"" + b"1")
    time.sleep(SECONDS / 2)
    connection.sendall(b"2")
    assert everything(connection).startswith(b"HTTP/1.1 408")
    assert time.monotonic() - begin >= SECONDS
    assert running.reasons == ["body_too_slow"]


def test_a_slow_body_that_nobody_waits_for_is_answered_once(running):
    received = everything(running.connect(POST % b"at-once" + b"1"))
    assert received.count(b"HTTP/1.1") == 1
    assert received.startswith(b"HTTP/1.1 200")


def test_a_body_in_tiny_chunks_that_never_ends_is_refused(running):
    connection = running.connect(CHUNKED % b"" + b"1\r\nx\r\n" * 5000)
    assert everything(connection).startswith(b"HTTP/1.1 413")
    assert running.reasons == ["body_too_large"]


def test_headers_after_a_body_are_limited(running):
    connection = running.connect(CHUNKED % b"" + b"1\r\nx\r\n0\r\nX: " + b"y" * 30_000)
    assert everything(connection).startswith(b"HTTP/1.1 413")


def test_requests_before_the_first_answer_are_limited(running):
    few = POST % b"" + b"12345" + (POST % b"" + b"12345") * 50
    connection = running.connect(few)
    connection.settimeout(5)
    received = b""
    while received.count(b"HTTP/1.1 200") < 51:
        received += connection.recv(65_536)
    assert b"HTTP/1.1 400" in everything(running.connect((POST % b"" + b"12345") * 1000))
    assert running.reasons == ["pipelined"]


def test_the_oldest_silent_connection_makes_room_first(running):
    idle = running.connect(POST % b"" + b"12345")
    assert answered(idle)
    first = running.connect()
    second = running.connect()
    running.connect()
    assert everything(first) == b""
    idle.sendall(POST % b"" + b"12345")
    assert answered(idle)
    second.sendall(POST % b"" + b"12345")
    assert answered(second)
    assert running.reasons == ["shed"]


def test_then_the_connection_that_has_been_idle_longest(running):
    idle = [running.connect(POST % b"" + b"12345") for _ in range(PLACES)]
    assert all(answered(one) for one in idle)
    idle[0].sendall(POST % b"" + b"12345")
    assert answered(idle[0])
    running.connect()
    # Which of the other two was answered first is not known here.
    closed = [_is_closed(one) for one in idle]
    assert closed.count(True) == 1
    assert not closed[0]


def _is_closed(connection):
    connection.settimeout(SECONDS / 5)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False


def test_a_connection_with_a_request_under_way_stays(patient):
    busy = [patient.connect(POST % b"") for _ in range(PLACES)]
    _wait_busy()
    assert everything(patient.connect()).startswith(b"HTTP/1.1 503")
    for one in busy:
        one.sendall(b"12345")
        assert answered(one)
    assert patient.reasons == ["too_many"]


def _wait_busy():
    """Until the server has read the heads, which it has no way to say."""
    time.sleep(SECONDS / 2.5)
