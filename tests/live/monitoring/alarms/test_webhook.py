import json
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from refusals import raises_code

from submax.live.declaring.alarm_settings import check_webhook
from submax.live.monitoring.alarms.webhook import (
    ATTEMPTS,
    MAX_WAITING,
    SIGNATURE,
    TIMESTAMP,
    WEBHOOK_FAILURES,
    Delivery,
    Webhook,
    signature,
)
from submax.live.monitoring.alarms.webhook_options import WebhookOptions


class Receiver(HTTPServer):
    """Takes alarms on loopback; the first answers have the given statuses, later ones 200."""

    def __init__(self, statuses=()):
        self.statuses, self.taken = list(statuses), []
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_address[1]}/hook?team=a"
        self._thread = Thread(target=self.serve_forever, args=[0.01], daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, dict(self.headers), body))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()

    def log_message(self, *arguments):
        pass


def sent(receiver, options=None, pauses=None):
    failures = Counter()
    allowed = options or WebhookOptions("s3cret", private=True)
    pause = (pauses if pauses is not None else []).append
    webhook = Webhook(failures, lambda: allowed, pause)
    webhook.deliver(Delivery(receiver.address, json.dumps({"alarm": "x"}).encode()))
    return failures[WEBHOOK_FAILURES]


def test_an_alarm_is_posted_with_a_signature():
    with Receiver() as receiver:
        assert sent(receiver) == 0
        ((path, headers, body),) = receiver.taken
    assert path == "/hook?team=a"
    assert headers["Content-Type"] == "application/json"
    expected = signature("s3cret", headers[TIMESTAMP], body)
    assert headers[SIGNATURE] == f"sha256={expected}"


def test_without_a_secret_there_is_no_signature():
    with Receiver() as receiver:
        assert sent(receiver, WebhookOptions(private=True)) == 0
        assert SIGNATURE not in receiver.taken[0][1]


def test_it_is_sent_again_with_longer_and_longer_pauses():
    pauses = []
    with Receiver([500, 503, 429]) as receiver:
        assert sent(receiver, pauses=pauses) == 0
        assert len(receiver.taken) == 4
    assert [0.5 * 2**n <= one <= 1.5 * 2**n for n, one in enumerate(pauses)] == [True] * 3


@pytest.mark.parametrize(("status", "attempts"), [(500, ATTEMPTS), (404, 1), (302, 1)])
def test_an_alarm_that_nobody_takes_is_counted(status, attempts):
    with Receiver([status] * 10) as receiver:
        assert sent(receiver) == 1
        assert len(receiver.taken) == attempts


def test_a_private_address_is_refused_unless_the_operator_allows_it():
    with Receiver() as receiver:
        assert sent(receiver, WebhookOptions()) == 1
        assert receiver.taken == []


def test_callers_never_wait_and_too_many_alarms_are_counted():
    failures = Counter()
    webhook = Webhook(failures, WebhookOptions)
    webhook._running = True
    for _ in range(MAX_WAITING + 3):
        webhook.send("http://127.0.0.1:9/", {"alarm": "x"})
    assert failures[WEBHOOK_FAILURES] == 3


@pytest.mark.parametrize(
    "address",
    ["ftp://example.com", "example.com", "http://", "http://a b", "https://user:pw@example.com", "http://x:0"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(address):
    with raises_code("invalid-input"):
        check_webhook(address)


def test_the_secret_may_be_in_a_file(tmp_path):
    (tmp_path / "secret").write_text("s3cret\n")
    given = {"SUBMAX_WEBHOOK_SECRET_FILE": str(tmp_path / "secret")}
    assert WebhookOptions.from_environment(given).secret == "s3cret"
    with raises_code("invalid-variable") as refused:
        WebhookOptions.from_environment({"SUBMAX_WEBHOOK_SECRET_FILE": str(tmp_path / "none")})
    assert refused.value.code == "invalid-variable"


def test_options_come_from_the_environment():
    given = {"SUBMAX_WEBHOOK_SECRET": "x", "SUBMAX_WEBHOOK_PRIVATE": "TRUE"}
    assert WebhookOptions.from_environment(given) == WebhookOptions("x", True)
    assert WebhookOptions.from_environment({}) == WebhookOptions(None, False)
    with raises_code("invalid-variable") as refused:
        WebhookOptions.from_environment({"SUBMAX_WEBHOOK_PRIVATE": "maybe"})
    assert refused.value.code == "invalid-variable"
