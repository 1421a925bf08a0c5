import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import httpx
import pytest
from click.testing import CliRunner
from waiting import wait_until

import submax.client.client
from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.cli import main
from submax.client import Client
from submax.core.errors import StoreError

ACTIONS = ["A", "B", "C"]
THREADS = 8
ROUNDS = 20 if "SUBMAX_SOAK" in os.environ else 2


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "page.db"
    open_bandit(path, actions=ACTIONS, background=False).close()
    return path


class Load:
    """Clients that decide and reward until they are stopped or the server is gone."""

    def __init__(self, server, **options):
        self.decisions, self.rewards, self.errors = {}, set(), []
        self._client = Client(server.address, "page", **options)
        self._stopping, self._lock = Event(), Lock()
        self._pool = ThreadPoolExecutor(THREADS)
        self._running = [self._pool.submit(self._run) for _ in range(THREADS)]

    def _run(self):
        while not self._stopping.is_set():
            try:
                decision = self._client.decide()
                with self._lock:
                    self.decisions[decision.id] = decision.action
                self._client.reward(decision.id, 1.0)
                with self._lock:
                    self.rewards.add(decision.id)
            except StoreError as error:
                self.errors.append(str(error))
                break

    def wait_for(self, count):
        wanted = len(self.rewards) + count
        wait_until(lambda: len(self.rewards) >= wanted)

    def end(self):
        """What went wrong in the clients but for what they are told is raised."""
        self._stopping.set()
        for one in self._running:
            one.result(timeout=300)
        self._pool.shutdown()
        self._client.close()


def stored(file):
    """The decisions by id with their actions, and the ids with a reward, as often as they are."""
    with open_store(file, read_only=True) as store:
        made = store.select("select id, action from decision")
        rewarded = store.select("select d.id from reward r join decision d on d.n = r.decision")
    return made, [identifier for (identifier,) in rewarded]


def check_kept(file, load):
    """All that was acknowledged is there, as it was told, once."""
    made, rewarded = stored(file)
    assert len({key for key, _ in made}) == len(made)
    assert len(set(rewarded)) == len(rewarded)
    assert set(load.decisions.items()) <= set(made)
    assert load.rewards <= set(rewarded)
    return made, rewarded


@pytest.fixture(scope="module")
def shared(start_server, tmp_path_factory):
    """A server for the tests that leave its store as it is."""
    path = tmp_path_factory.mktemp("shared") / "page.db"
    open_bandit(path, actions=ACTIONS, background=False).close()
    return start_server(path)


def test_sigterm_under_load_loses_nothing_that_was_acknowledged(serve, file):
    server = serve(file)
    load = Load(server, attempts=1)
    load.wait_for(100)
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    load.end()
    assert len(load.errors) == THREADS
    check_kept(file, load)
    assert "Traceback" not in server.said
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


HEAD = (
    b"POST /bandits/page/decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 14\r\nExpect: 100-continue\r\n\r\n"
)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Said when the body is waited for: the request is under way."""


def test_sigterm_lets_a_request_under_way_finish_and_takes_no_other(serve, file):
    server = serve(file)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as slow:
        slow.sendall(HEAD)
        assert slow.recv(65_536) == CONTINUE
        slow.sendall(b'{"id":')
        server.signal(signal.SIGTERM)

        def refused():
            try:
                socket.create_connection(("127.0.0.1", server.port), timeout=5).close()
            except ConnectionRefusedError:
                return True
            return False

        wait_until(refused)
        slow.sendall(b' "late"}')
        answer = slow.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 200")
    assert server.ended() == 0
    assert [key for key, _ in stored(file)[0]] == ["late"]


@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_sigterm_while_starting_ends_in_order(serve, file, pause):
    server = serve(file, is_awaited=False)
    time.sleep(pause)
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    assert "Traceback" not in server.said
    open_store(file).close()


def test_a_new_file_is_made_and_ctrl_c_ends_in_order(serve, tmp_path):
    file = tmp_path / "new.db"
    server = serve(file, fresh=True)
    body = {"name": "page", "actions": ACTIONS}
    assert server.post("/bandits", json=body, timeout=30).status_code == 201
    with Client(server.address, "page") as client:
        client.decide(id="d1")
    server.signal(signal.SIGINT)
    assert server.ended() == 0
    assert "Traceback" not in server.said
    assert len(stored(file)[0]) == 1


def refusal(file, *options):
    """The exit code of a server that does not start, and what it says at last."""
    result = CliRunner().invoke(main, ["serve", str(file), *map(str, options)])
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.exit_code, result.stderr.splitlines()[-1]


def test_a_second_server_on_the_same_file_or_port_is_refused(shared, tmp_path):
    status, said = refusal(shared.file, "--port", 0)
    assert status == 1
    assert "another process" in said
    status, said = refusal(tmp_path / "other.db", "--port", shared.port)
    assert status == 2
    assert f"127.0.0.1:{shared.port}" in said


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--port", "70000"),
        ("--rate", "nan"),
        # Without a key nobody else may reach the server.
        *[("--host", one) for one in ("0.0.0.0", "::", "", "192.168.1.5", "127.0.0.1x")],
    ],
)
def test_options_that_cannot_be_are_refused(file, option, value):
    status, said = refusal(file, "--port", "0", option, value)
    assert status == 2
    assert ("submax keys add" if option == "--host" else option.strip("-")) in said
    open_store(file).close()


def test_kill_under_load_loses_nothing_and_doubles_nothing(serve, file, monkeypatch):
    monkeypatch.setattr(submax.client.client, "LONGEST_PAUSE", 0.1)
    server = serve(file)
    load = Load(server, attempts=10_000)
    for _ in range(ROUNDS):
        load.wait_for(50)
        server.signal(signal.SIGKILL)
        server.ended()
        server = serve(file, server.port)
    load.wait_for(50)
    load.end()
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    assert load.errors == []
    made, rewarded = check_kept(file, load)
    assert len(made) == len(load.decisions)
    assert len(rewarded) == len(load.rewards)


def test_a_full_disk_is_said_so_and_left_behind_once_there_is_room(serve, file):
    server = serve(file)
    resource = pytest.importorskip("resource", reason="limits of processes are those of Linux")
    small = (200_000, resource.RLIM_INFINITY)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, small)
    acknowledged = []
    with httpx.Client(verify=False, base_url=f"{server.address}/bandits/page", timeout=60) as http:
        for number in range(2000):
            answer = http.post("/decide", json={"id": str(number)})
            if answer.status_code != 200:
                break
            acknowledged.append(str(number))
        assert answer.status_code == 503
        assert answer.json()["code"] == "store-unavailable"
        # What is smaller could still fit.
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        assert http.post("/reward", json={"id": "0", "value": 1}).status_code == 503
        assert server.get("/healthz").status_code == 200
        wait_until(lambda: server.get("/readyz").status_code == 503)
        room = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, room)
        server.wait_ready()
        for number in range(5):
            assert http.post("/decide", json={"id": f"after-{number}"}).status_code == 200
            acknowledged.append(f"after-{number}")
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    assert sorted(key for key, _ in stored(file)[0]) == sorted(acknowledged)
    result = CliRunner().invoke(main, ["doctor", str(file)])
    assert result.exit_code == 0, result.output
