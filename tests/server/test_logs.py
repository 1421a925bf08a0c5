"""The log of a server: lines of text or JSON, with time, request and duration."""

import json
import logging
import re
import signal

import pytest

from submax.bandit.durable import open_bandit
from submax.server.observing import JsonFormatter, TextFormatter
from submax.server.run import announce

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.parametrize("formatter", [TextFormatter, JsonFormatter])
def test_a_text_of_a_request_does_not_look_like_a_line_of_its_own(formatter):
    record = logging.makeLogRecord({"name": "submax", "levelname": "WARNING", "msg": "a\nb\r{}"})
    assert len(formatter().format(record).splitlines()) == 1


def test_an_answer_has_the_id_of_its_request_or_a_new_one_if_that_is_none(http):
    answered = [http.get("/bandits", headers={"x-request-id": one}) for one in ("r-1", "a b")]
    first, second = [one.headers["x-request-id"] for one in answered]
    assert first == "r-1"
    assert re.fullmatch("[a-zA-Z0-9-]+", second)


def test_refused_requests_do_not_fill_the_log(http, caplog):
    http.post("/bandits", json={"name": "page", "actions": ["A", "B"]})
    caplog.set_level(logging.INFO, "submax.requests")
    caplog.clear()
    for _ in range(300):
        http.post("/bandits/page/decide", json={"unknown": 1}, headers={"x-request-id": "r-1"})
    assert 0 < len(caplog.records) < 300
    fields = caplog.records[0].fields
    assert fields.pop("duration_ms") > 0
    assert fields == {
        "request_id": "r-1",
        "bandit": "page",
        "operation": "decide",
        "status": 400,
        "code": "invalid-input",
    }


@pytest.mark.slow
def test_a_server_writes_json_lines_as_its_variables_say(serve, tmp_path):
    file = tmp_path / "page.db"
    open_bandit(file, actions=["A", "B"], background=False).close()
    variables = {"SUBMAX_LOG_FORMAT": "json", "SUBMAX_LOG_LEVEL": "debug"}
    server = serve(file, is_awaited=False, **variables)
    first = json.loads(server.first_line)
    server.address = first["address"]
    assert (first["event"], first["bandits"]) == ("serving", ["page"])
    server.wait_ready()
    server.post("/bandits/page/decide", json={}, headers={"x-request-id": "mine"})
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


def test_the_start_names_no_password(caplog, capsys):
    announce("postgresql://me:secret@there/db", "127.0.0.1", 8000, ["page"])
    said = capsys.readouterr().err
    assert "http://127.0.0.1:8000" in said
    assert "secret" not in said + caplog.text
