"""SIGTERM ends the server, whatever it does."""

import contextlib
import os
import random
import signal
import socket

import pytest
from waiting import wait_until

from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.client import Client

POLICY = """
import os
from dataclasses import dataclass, replace
from pathlib import Path
from submax.policies.epsilon_greedy import Random

def said(word):
    # Renamed, so that whoever finds the file can read it.
    written = Path(__file__).with_name("written")
    written.write_text(str(os.getpid()))
    written.rename(written.with_name(word))

@dataclass(frozen=True)
class SpinningUpdate(Random):
    def update(self, state, feedback, rng):
        said("begun")
        while True:
            pass

@dataclass(frozen=True)
class SpinningTraining(SpinningUpdate):
    @property
    def traits(self):
        return replace(super().traits, trains_models=True)
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "policy.py").write_text(POLICY)
    return tmp_path / "page.db"


@pytest.fixture
def serving_policy(serve, file):
    def serving_policy(name):
        policy = f"{file.with_name('policy.py')}:{name}"
        options = {"reward_wait": 0.01, "refit_rows": 1, "background": False}
        bandit = open_bandit(file, actions=["A", "B"], policy=policy, **options)
        bandit.decide()
        bandit.close()
        return serve(file, 0, "--trust")

    return serving_policy


def ends(server):
    """The exit status after SIGTERM; the file must be free then."""
    server.signal(signal.SIGTERM)
    status = server.ended()
    open_store(server.file).close()
    return status


def test_while_a_fit_computes_for_ever(serving_policy, file):
    server = serving_policy("SpinningUpdate")
    wait_until(file.with_name("begun").exists)
    assert server.get("/healthz", timeout=30).status_code == 200
    with Client(server.address, "page") as client:
        client.decide(id="meanwhile")
    assert ends(server) == 0
    assert "Traceback" not in server.said
    with open_bandit(file, background=False, trust=True) as bandit:
        assert bandit.decide(id="meanwhile").repeated


def test_while_a_model_is_trained(serving_policy, file):
    server = serving_policy("SpinningTraining")
    wait_until(file.with_name("begun").exists)
    training = int(file.with_name("begun").read_text())
    assert training != server.process.pid
    os.kill(training, 0)
    # The training has a process of its own, which is killed.
    assert ends(server) == 0
    assert "Traceback" not in server.said
    with pytest.raises(ProcessLookupError):
        os.kill(training, 0)


HEAD = (
    b"POST /bandits/page/decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
)
EXPECTING = HEAD + b"Content-Length: 14\r\nExpect: 100-continue\r\n\r\n"
HELD_OPEN = {
    "nothing": (b"", b""),
    "half a head": (b"GET /healthz HTTP/1.1\r\nHost: ", b""),
    "a request": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"HTTP/1.1 200 OK"),
    "half a body": (HEAD + b"Content-Length: 9\r\n\r\n{", b""),
    "no body at all": (EXPECTING, b"HTTP/1.1 100 Continue"),
    "an export": (
        b"GET /bandits/page/export HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"HTTP/1.1 200 OK",
    ),
}
"""What clients send before they fall silent, and how the answer begins that they get at once."""


def fill(file):
    """Six megabytes of random numbers, more than the buffers of sockets hold."""
    fields, rng = [f"x{number}" for number in range(100)], random.Random(0)
    context = dict.fromkeys(fields, "number")
    options = {"context": context, "policy": "linucb", "background": False}
    with open_bandit(file, actions=["A", "B"], **options) as bandit:
        for _ in range(8):
            requests = [{"context": {name: rng.random() for name in fields}} for _ in range(1000)]
            bandit.decide_many(requests)


def test_while_clients_hold_connections_open_and_do_not_read(serve, file):
    fill(file)
    server = serve(file)
    with contextlib.ExitStack() as stack:
        for kind, (sent, answer) in HELD_OPEN.items():
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(60)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(sent)
            assert not answer or connection.recv(len(answer)) == answer, kind
        assert ends(server) == 0
