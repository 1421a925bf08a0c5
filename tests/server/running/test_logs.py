"""The log of a server: lines of text or JSON, with time, request and duration."""

import json
import logging
import re
import signal

import pytest
from starlette.responses import Response

from submax.live.bandits.open import open_bandit
from submax.web.server.observing.json_formatter import JsonFormatter
from submax.web.server.observing.request_context import CURRENT, RequestContext
from submax.web.server.observing.request_log import REFUSALS_A_SECOND, RequestLog
from submax.web.server.observing.text_formatter import TextFormatter
from submax.web.server.run import announce
from submax.web.server.running.serve_options import ServeOptions

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Asked:
    """A request for a decision of the bandit page, with an id."""

    def __init__(self, identifier="r-1"):
        self.headers, self.path_params = {"x-request-id": identifier}, {"name": "page"}


def record(message, **extra):
    made = logging.makeLogRecord(
        {"name": "submax", "levelno": 30, "levelname": "WARNING", "msg": message, **extra}
    )
    made.created = 0.5
    return made


def test_a_message_is_one_json_object_with_its_request():
    token = CURRENT.set(RequestContext("decide", Asked()))
    line = JsonFormatter().format(record("a\nb", event="e", fields={"number": 1, "odd": object}))
    CURRENT.reset(token)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "warning",
        "logger": "submax",
        "event": "e",
        "message": "a\nb",
        "request_id": "r-1",
        "bandit": "page",
        "number": 1,
        "odd": "<class 'object'>",
    }


def test_a_text_of_a_request_does_not_look_like_a_line_of_its_own():
    assert TextFormatter().format(record("a\nb")) == "1970-01-01T00:00:00.500Z WARNING a\\nb"


def test_an_id_that_is_none_is_replaced():
    context = RequestContext("decide", Asked("a b"))
    assert context.given_identifier is None
    assert context.identifier == context.identifier != "a b"


def test_refused_requests_do_not_fill_the_log(caplog):
    log, refused = RequestLog(), Response(b'{"error": "no", "code": "c"}', 400)
    caplog.set_level(logging.INFO, "submax.requests")
    for _ in range(1000):
        log.write(RequestContext("decide", Asked()), refused, 0.001)
    assert REFUSALS_A_SECOND <= len(caplog.records) < 500
    assert caplog.records[0].fields == {
        "request_id": "r-1",
        "bandit": "page",
        "operation": "decide",
        "status": 400,
        "duration_ms": 1.0,
        "code": "c",
    }


@pytest.mark.slow
def test_a_server_writes_json_lines_as_its_variables_say(serve, tmp_path):
    file = tmp_path / "page.db"
    open_bandit(file, actions=["A", "B"], background=False).close()
    variables = {"SUBMAX_LOG_FORMAT": "json", "SUBMAX_LOG_LEVEL": "debug"}
    server = serve(file, 0, **variables)
    first = json.loads(server.first_line)
    server.address = first["address"]
    assert (first["event"], first["bandits"]) == ("serving", ["page"])
    server.wait_ready()
    named = {"x-request-id": "mine"}
    answer = server.post("/bandits/page/decide", json={}, headers=named)
    assert answer.headers["x-request-id"] == "mine"
    refused = server.post("/bandits/page/reward", json={})
    assert "x-request-id" not in refused.headers
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    lines = [json.loads(line) for line in server.said.splitlines()]
    assert all(TIME.fullmatch(line["time"]) for line in lines)
    requests = [line for line in lines if line["event"] == "request"]
    (decided,) = [line for line in requests if line["operation"] == "decide"]
    assert (decided["request_id"], decided["bandit"], decided["status"]) == ("mine", "page", 200)
    assert decided["duration_ms"] > 0
    (wrong,) = [line for line in requests if line["operation"] == "reward"]
    assert (wrong["level"], wrong["code"]) == ("info", "invalid-input")


def test_a_variable_that_is_misspelt_is_named_at_the_start(monkeypatch, caplog, capsys):
    monkeypatch.setenv("SUBMAX_PROT", "1")
    announce(ServeOptions.of({"store": "postgresql://me:secret@there/db"}, {}), 8000, ["page"])
    assert [one.getMessage() for one in caplog.records] == [
        "the variable SUBMAX_PROT is not read: did you mean 'SUBMAX_PORT'?"
    ]
    assert capsys.readouterr().err == "submax serves ...@there/db (page) at http://127.0.0.1:8000\n"
