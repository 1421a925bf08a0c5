"""Spans of requests, writes and fits, which a server sends as OTLP."""

import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from click.testing import CliRunner
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from waiting import wait_until

import submax.core.optional
from submax.bandit.durable import open_bandit
from submax.cli import main

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(ThreadingHTTPServer):
    """Collects the spans that are sent to it, and under which names of services they came."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Collecting)
        self.services, self.spans = set(), []

    def add(self, body: bytes) -> None:
        for one in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services.add(attributes_of(one.resource)["service.name"])
            self.spans += [span for scope in one.scope_spans for span in scope.spans]

    def named(self, name: str) -> list:
        found = [span for span in self.spans if span.name == name]
        return sorted(found, key=lambda span: span.start_time_unix_nano)


class Collecting(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.add(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        """Say nothing."""


def attributes_of(described) -> dict:
    return {one.key: one.value.string_value or one.value.int_value for one in described.attributes}


@pytest.fixture
def collector():
    collector = Collector()
    thread = Thread(target=collector.serve_forever, args=[0.01])
    thread.start()
    yield collector
    collector.shutdown()
    thread.join()
    collector.server_close()


@pytest.mark.parametrize("name", ["submax", "shop"])
def test_a_server_sends_spans_of_requests_writes_and_fits(serve, tmp_path, collector, name):
    file = tmp_path / "page.db"
    options = {"reward_wait": 0, "refit_rows": 1, "background": False}
    open_bandit(file, actions=["A", "B"], **options).close()
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}"}
    if name != "submax":
        variables["OTEL_SERVICE_NAME"] = name
    server = serve(file, 0, "--telemetry", **variables)
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": "r-1"}
    server.post("/bandits/page/decide", json={"id": "a"}, headers=headers)
    server.post("/bandits/none/decide", json={})
    server.post("/bandits/page/reward", json={"id": "a", "value": 1})
    wait_until(lambda: server.get("/bandits/page").json()["version"] > 0)
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    assert collector.services == {name}
    decided, unknown = collector.named("submax.decide")
    assert (decided.trace_id.hex(), decided.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes_of(decided) == {
        "submax.operation": "decide",
        "submax.bandit": "page",
        "submax.request_id": "r-1",
        "http.response.status_code": 200,
    }
    assert attributes_of(unknown)["http.response.status_code"] == 404
    assert not unknown.parent_span_id
    written = collector.named("submax.store.write")
    assert sum(attributes_of(one)["submax.appends"] for one in written) >= 2
    fitted = collector.named("submax.refit")[0]
    assert attributes_of(fitted) == {"submax.bandit": "page"}
    assert fitted.end_time_unix_nano > fitted.start_time_unix_nano


def test_without_the_extra_the_command_names_it(monkeypatch, tmp_path):
    monkeypatch.setattr(submax.core.optional, "find_spec", lambda name: None)
    file = tmp_path / "a.db"
    result = CliRunner().invoke(main, ["serve", str(file), "--telemetry"])
    assert result.exit_code == 2
    assert not file.exists()
