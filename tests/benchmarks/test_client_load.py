"""The clients of the benchmarks know when an answer has ended, and when it is an error."""

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture
def client(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from load import client_load

    return client_load


def test_an_answer_is_complete_with_its_last_byte(client):
    complete = [client.http_complete(OK[:end]) for end in range(len(OK) + 1)]
    assert complete == [False] * len(OK) + [True]


def test_an_error_is_no_answer(client):
    with pytest.raises(RuntimeError, match="503"):
        client.http_complete(OK.replace(b"200 OK", b"503 No"))


def test_lines_end_with_an_empty_one(client):
    assert not client.lines_complete(b"0:0.5,1:0.5\n")
    assert client.lines_complete(b"0:0.5,1:0.5\n\n")


def test_a_request_says_how_long_it_is(client):
    request = client.http_request("/bandits/page/decide", b"{}")
    assert request.startswith(b"POST /bandits/page/decide HTTP/1.1\r\n")
    assert request.endswith(b"Content-Length: 2\r\n\r\n{}")


@pytest.mark.slow
def test_a_server_is_loaded(client, tmp_path):
    import submax
    from load.clients import Target, cpu_seconds, run_clients
    from load.submax_server import SubmaxServer

    path = tmp_path / "page.db"
    submax.open(path, actions=["A", "B"], background=False).close()
    with SubmaxServer(str(path)) as server:
        target = Target(server.port, "http", client.http_request("/bandits/page/decide", b"{}"))
        load = run_clients([target], 2, 0.3)
        assert cpu_seconds([server.process.pid]) > 0
    assert load.requests > 0
    assert 0 < load.p50_ms <= load.p99_ms
