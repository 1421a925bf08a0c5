"""An alarm is sent to the address that was declared."""

import hmac
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread

import pytest
from waiting import wait_until

import submax
from submax.live.monitoring.alarms import webhook
from submax.live.monitoring.alarms.webhook_options import WebhookOptions
from submax.live.store.memory_store import MemoryStore


class Receiver(HTTPServer):
    """Takes alarms on loopback; the first answers have the given statuses, later ones 200."""

    def __init__(self, statuses):
        self.statuses, self.taken = list(statuses), []
        super().__init__(("127.0.0.1", 0), Handler)
        Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, dict(self.headers), body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.end_headers()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def alarmed(monkeypatch, clock):
    """A bandit that raises an alarm with its first decision, and sends it to a receiver."""
    monkeypatch.setattr(webhook, "FIRST_PAUSE_SECONDS", 0.001)

    def alarmed(receiver, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, str(value))
        address = f"http://127.0.0.1:{receiver.server_port}/hook?team=a"
        alarms = {"webhook": address, "smallest_propensity": 0.6}
        store = MemoryStore(clock)
        bandit = submax.open(
            store, actions=["A", "B"], policy="random", alarms=alarms, background=False
        )
        store.try_lead(bandit.name)
        bandit.decide()
        bandit.ledger()
        assert len(bandit.alarms()) == 1
        return bandit

    return alarmed


def test_an_alarm_is_posted_with_a_signature_until_it_is_taken(alarmed, tmp_path):
    (tmp_path / "secret").write_text("s3cret\n")
    with Receiver([503, 429]) as receiver:
        bandit = alarmed(
            receiver,
            SUBMAX_WEBHOOK_PRIVATE="true",
            SUBMAX_WEBHOOK_SECRET_FILE=tmp_path / "secret",
        )
        wait_until(lambda: len(receiver.taken) == 3)
    assert not any(bandit.failures.values())
    path, headers, body = receiver.taken[-1]
    assert path == "/hook?team=a"
    assert json.loads(body)["alarm"] == "propensity"
    signed = headers["X-Submax-Timestamp"].encode() + b"." + body
    expected = hmac.new(b"s3cret", signed, "sha256").hexdigest()
    assert headers["X-Submax-Signature"] == f"sha256={expected}"


@pytest.mark.parametrize(
    ("status", "private", "attempts"),
    [(500, "true", webhook.ATTEMPTS), (404, "true", 1), (302, "true", 1), (200, "false", 0)],
)
def test_an_alarm_that_is_not_taken_or_goes_to_a_private_address_is_counted(
    alarmed, status, private, attempts
):
    with Receiver([status] * 10) as receiver:
        bandit = alarmed(receiver, SUBMAX_WEBHOOK_PRIVATE=private)
        wait_until(lambda: any(bandit.failures.values()))
    # A redirection is not followed.
    assert [path for path, _, _ in receiver.taken] == ["/hook?team=a"] * attempts
    assert all("X-Submax-Signature" not in headers for _, headers, _ in receiver.taken)


def test_callers_never_wait_and_too_many_alarms_are_counted():
    failures, sending, free = {}, Event(), Event()

    def options():
        sending.set()
        free.wait()
        return WebhookOptions()

    sender = webhook.Webhook(failures, options)
    sender.send("http://127.0.0.1:9/", {"alarm": "x"})
    sending.wait()
    for _ in range(webhook.MAX_WAITING + 3):
        sender.send("http://127.0.0.1:9/", {"alarm": "x"})
    assert sum(failures.values()) == 3
    # Those that wait are sent in their turn, and the address is a private one.
    free.set()
    wait_until(lambda: sum(failures.values()) == webhook.MAX_WAITING + 4)
