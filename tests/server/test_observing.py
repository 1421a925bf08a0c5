"""The log of a server, spans, and metrics: the board and the alerts ask for those that exist."""

import json
import logging
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families
from waiting import wait_until

import submax.core.optional
from submax.bandit.declaring import declare
from submax.bandit.durable import open_bandit
from submax.cli import main
from submax.server.observing import JsonFormatter, Telemetry, TextFormatter

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
        http.post("/bandits/page/decide", json={"unknown": 1})
    assert 0 < len(caplog.records) < 300


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
    assert (wrong["level"], wrong["status"], wrong["code"]) == ("info", 400, "invalid-input")


TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_requests_writes_and_fits_have_spans(http):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    http.app.telemetry = Telemetry(provider)

    def named(name):
        found = [span for span in exporter.get_finished_spans() if span.name == name]
        return sorted(found, key=lambda span: span.start_time)

    body = {"name": "page", "actions": ["A", "B"], "reward_wait": 0, "refit_rows": 1}
    http.post("/bandits", json=body)
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": "r-1"}
    http.post("/bandits/page/decide", json={"id": "a"}, headers=headers)
    http.post("/bandits/none/decide", json={})
    http.post("/bandits/page/reward", json={"id": "a", "value": 1})
    fitted = wait_until(lambda: named("submax.refit"))[0]
    http.app.telemetry.close()
    decided, unknown = named("submax.decide")
    assert (f"{decided.context.trace_id:x}", f"{decided.parent.span_id:x}") == (TRACE[1:], PARENT)
    assert dict(decided.attributes) == {
        "submax.operation": "decide",
        "submax.bandit": "page",
        "submax.request_id": "r-1",
        "http.response.status_code": 200,
    }
    assert unknown.attributes["http.response.status_code"] == 404
    assert unknown.parent is None
    assert sum(one.attributes["submax.appends"] for one in named("submax.store.write")) >= 2
    assert dict(fitted.attributes) == {"submax.bandit": "page"}


def test_spans_are_sent_where_the_variables_of_opentelemetry_say(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    telemetry = Telemetry.of_environment()
    assert telemetry._provider.resource.attributes["service.name"] == "shop"
    telemetry.close()


def test_without_the_extra_the_command_names_it(monkeypatch, tmp_path):
    monkeypatch.setattr(submax.core.optional, "find_spec", lambda name: None)
    file = tmp_path / "a.db"
    result = CliRunner().invoke(main, ["serve", str(file), "--telemetry"])
    assert result.exit_code == 2
    assert not file.exists()


FOLDER = Path(__file__).parents[2] / "deploy"
BOARD = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))
BY_PROMETHEUS = {"up": {"job", "instance"}}
"""Metrics that Prometheus makes itself."""
TARGET_LABELS = {"job", "instance"}
"""Labels that Prometheus adds to every metric."""


def queries():
    for panel in BOARD["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
    for group in ALERTS["groups"]:
        yield from ((rule["alert"], rule["expr"]) for rule in group["rules"])
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]


EMPTY = {"submax_failures_total": {"bandit", "kind"}, "submax_conditions": {"bandit", "kind"}}
"""Metrics without a value while nothing has failed, and their labels."""


@pytest.fixture(scope="module")
def exported(shared_serving, shared_store):
    """The labels and their values, by metric, of a server that has decided and got rewards."""
    declare(shared_store, "page", {"actions": ["A"]})
    http = shared_serving(shared_store)
    http.post("/bandits/page/decide", json={"id": "a"})
    http.post("/bandits/page/decide-many", json={"requests": [{}]})
    http.post("/bandits/page/reward", json={"id": "a", "value": 1})
    http.post("/bandits/page/reward-many", json={"rewards": [{"id": "b", "value": 1}]})

    def measured():
        text = http.get("/metrics").text
        # The counts follow the log.
        return text if 'kind="rewards"} 2' in text else ""

    text = wait_until(measured)
    found = {name: {label: set() for label in EMPTY[name]} for name in EMPTY}
    for name in EMPTY:
        assert f"# HELP {name.removesuffix('_total')}" in text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values = found.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                values.setdefault(label, set()).add(value)
    return found


@pytest.mark.parametrize(("title", "query"), list(queries()))
def test_a_query_names_metrics_labels_and_kinds_that_exist(exported, title, query):
    names = set(re.findall(r"\b(?:submax_[a-z_]+|process_[a-z_]+|up)\b", query))
    assert names, title
    for name in names - set(BY_PROMETHEUS):
        assert name in exported, f"{title}: {name}"
    for name, inner in re.findall(r"\b([a-z_]+){([^}]*)}", query):
        known = exported.get(name, {}).keys() | BY_PROMETHEUS.get(name, set()) | TARGET_LABELS
        for label, _, wanted in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', inner):
            assert label in known, f"{title}: {label}"
            if label in ("operation", "kind"):
                assert set(wanted.split("|")) <= exported[name][label], f"{title}: {wanted}"
    grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", query))))
    labels = set().union(*(exported.get(name, {}) for name in names))
    assert grouped <= labels | TARGET_LABELS, title


def test_every_alert_says_what_to_do():
    for group in ALERTS["groups"]:
        for rule in group["rules"]:
            assert set(rule["annotations"]) == {"summary", "action"}
            assert rule["labels"]["severity"] in ("page", "ticket")
    if shutil.which("promtool"):
        command = ["promtool", "check", "rules", FOLDER / "alerts.yaml"]
        subprocess.run(command, check=True, capture_output=True)
