"""The command serve: its options, and how it ends; nothing that was acknowledged is lost."""

import contextlib
import inspect
import os
import random
import resource
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

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
from submax.server import run


@pytest.fixture
def options(monkeypatch):
    """The options with which the command would serve."""

    def options(*words, **variables):
        called = []
        monkeypatch.setattr(run, "serve", lambda **given: called.append(given))
        result = CliRunner().invoke(main, ["serve", *words], env=variables)
        assert result.exit_code == 0, result.output
        return called[0]

    return options


def test_defaults_hold_if_nothing_is_given(options):
    defaults = inspect.signature(run.serve).parameters
    found = options("a.db", SUBMAX_PORT="", SUBMAX_TRUST="")
    assert found == {name: one.default for name, one in defaults.items()} | {"store": "a.db"}


def test_a_variable_sets_an_option_and_the_command_line_wins(options):
    variables = {"SUBMAX_STORE": "b.db", "SUBMAX_LOG_FORMAT": "JSON", "SUBMAX_TRUST": "yes"}
    found = options(**variables, SUBMAX_PORT="0")
    assert (found["store"], found["log_format"], found["trust"]) == ("b.db", "json", True)
    assert options("a.db", "--port", "1", **variables, SUBMAX_PORT="0")["port"] == 1


def test_a_wrong_variable_is_refused_and_named(tmp_path):
    status, said = refusal(tmp_path / "a.db", SUBMAX_PORT="65536")
    assert status == 2
    assert "--port" in said
    assert list(tmp_path.iterdir()) == []


def test_a_variable_may_name_a_file_with_the_value(options, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("postgresql://a:b@c/d\n")
    by_file = {"SUBMAX_STORE_FILE": str(secret)}
    assert options(**by_file)["store"] == "postgresql://a:b@c/d"
    # An empty variable takes back that of a container file.
    assert options(**by_file, SUBMAX_STORE="")["store"] == "postgresql://a:b@c/d"
    result = CliRunner().invoke(main, ["serve"], env={"SUBMAX_STORE_FILE": "/nowhere"})
    assert result.exit_code == 2
    assert "(invalid-variable)" in result.stderr


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
        self._stopping = Event()
        self._pool = ThreadPoolExecutor(THREADS)
        self._running = [self._pool.submit(self._run) for _ in range(THREADS)]

    def _run(self):
        while not self._stopping.is_set():
            try:
                decision = self._client.decide()
                self.decisions[decision.id] = decision.action
                self._client.reward(decision.id, 1.0)
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_under_load_loses_nothing_that_was_acknowledged(serve, file, number):
    server = serve(file)
    load = Load(server, attempts=1)
    load.wait_for(100)
    server.signal(number)
    assert server.ended() == 0
    wait_until(lambda: len(load.errors) == THREADS)
    load.end()
    check_kept(file, load)
    assert "Traceback" not in server.said
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


EXPECTING = (
    b"POST /bandits/page/decide HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 14\r\nExpect: 100-continue\r\n\r\n"
)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Said when the body is waited for: the request is under way."""


def test_sigterm_lets_a_request_under_way_finish_and_takes_no_other(serve, file):
    server = serve(file)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as slow:
        slow.sendall(EXPECTING)
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


def refusal(file, *options, **variables):
    """The exit code of a server that does not start, and what it says at last."""
    words = ["serve", str(file), *map(str, options)]
    result = CliRunner().invoke(main, words, env=variables)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.exit_code, result.stderr.splitlines()[-1]


def test_a_second_server_on_the_same_file_or_port_is_refused(serve, file, tmp_path):
    port = serve(file).port
    status, said = refusal(file, "--port", 0)
    assert status == 1
    assert "another process" in said
    status, said = refusal(tmp_path / "other.db", "--port", port)
    assert status == 2
    assert f"127.0.0.1:{port}" in said


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
    small = (1_000_000, resource.RLIM_INFINITY)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, small)
    acknowledged = []
    with httpx.Client(verify=False, base_url=f"{server.address}/bandits/page", timeout=60) as http:
        for number in range(2000):
            answer = http.post("/decide", json={"id": str(number)})
            if answer.status_code != 200:
                break
            acknowledged.append(str(number))
        assert len(acknowledged) > 10
        assert answer.status_code == 503
        assert answer.json()["code"] == "store-unavailable"
        # What is smaller could still fit.
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        assert http.post("/reward", json={"id": "0", "value": 1}).status_code == 503
        assert server.get("/healthz").status_code == 200
        assert server.get("/bandits/page").json()["counts"]["decisions"] == len(acknowledged)
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


def ends(server):
    """The exit status after SIGTERM; the file must be free then."""
    server.signal(signal.SIGTERM)
    status = server.ended()
    open_store(server.file).close()
    return status


@pytest.mark.parametrize("policy", ["SpinningUpdate", "SpinningTraining"])
def test_sigterm_while_a_fit_computes_for_ever(serve, tmp_path, policy):
    (tmp_path / "policy.py").write_text(POLICY)
    options = {"reward_wait": 0.01, "refit_rows": 1, "background": False}
    options["policy"] = f"{tmp_path / 'policy.py'}:{policy}"
    with open_bandit(tmp_path / "page.db", actions=["A", "B"], **options) as bandit:
        bandit.decide()
    server = serve(tmp_path / "page.db", 0, "--trust")
    wait_until((tmp_path / "begun").exists)
    fitting = int((tmp_path / "begun").read_text())
    assert fitting != server.process.pid
    assert server.get("/healthz", timeout=30).status_code == 200
    with Client(server.address, "page") as client:
        client.decide(id="meanwhile")
    os.kill(fitting, 0)
    # The fit has a process of its own, which is killed.
    assert ends(server) == 0
    assert "Traceback" not in server.said
    with pytest.raises(ProcessLookupError):
        os.kill(fitting, 0)
    with open_bandit(server.file, background=False, trust=True) as bandit:
        assert bandit.decide(id="meanwhile").repeated


HELD_OPEN = {
    "nothing": (b"", b""),
    "half a head": (b"GET /healthz HTTP/1.1\r\nHost: ", b""),
    "a request": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"HTTP/1.1 200 OK"),
    "half a body": (EXPECTING.replace(b"Expect", b"X") + b"{", b""),
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


def test_sigterm_while_clients_hold_connections_open_and_do_not_read(serve, tmp_path):
    fill(tmp_path / "page.db")
    server = serve(tmp_path / "page.db")
    with contextlib.ExitStack() as stack:
        for kind, (sent, answer) in HELD_OPEN.items():
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(60)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(sent)
            assert not answer or connection.recv(len(answer)) == answer, kind
        assert ends(server) == 0
