"""Spans of requests, writes and fits, collected in memory or sent as OTLP."""

import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from click.testing import CliRunner
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import submax.core.running.extras
from submax.cli import main
from submax.live.bandits.open import open_bandit
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server.interface.request_pipeline import RequestPipeline
from submax.web.server.metrics import Metrics
from submax.web.server.observing.telemetry import Telemetry
from submax.web.server.service import Service

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def telemetry(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry(provider)
    yield telemetry
    telemetry.close()


@pytest.fixture
def http(serving, telemetry, tmp_path, trial, eventually):
    file = tmp_path / "page.db"
    open_bandit(file, actions=["A", "B"], background=False).close()
    service = Service(SQLiteStore(file), trial)
    pipeline = RequestPipeline(service, 1e6, Metrics(service.opened))
    pipeline.telemetry = telemetry
    http = serving(service, pipeline=pipeline)
    eventually(lambda: http.get("/readyz").status_code == 200)
    return http


def test_a_request_is_a_span_of_the_callers_trace(http, exporter):
    exporter.clear()
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": "r-1"}
    http.post("/bandits/page/decide", json={"id": "a"}, headers=headers)
    http.post("/bandits/none/decide", json={})
    decided, unknown = [
        span for span in exporter.get_finished_spans() if span.name == "submax.decide"
    ]
    assert format(decided.context.trace_id, "032x") == TRACE
    assert format(decided.parent.span_id, "016x") == PARENT
    assert dict(decided.attributes) == {
        "submax.operation": "decide",
        "submax.bandit": "page",
        "submax.request_id": "r-1",
        "http.response.status_code": 200,
    }
    assert unknown.attributes["http.response.status_code"] == 404
    assert unknown.parent is None


def test_writes_and_fits_are_spans_until_telemetry_is_closed(telemetry, exporter, tmp_path):
    with open_bandit(tmp_path / "a.db", actions=["A", "B"], reward_wait=0, background=False) as a:
        exporter.clear()
        for _ in range(3):
            a.reward(a.decide().id, 1.0)
        a.refit()
        spans = exporter.get_finished_spans()
        telemetry.close()
        exporter.clear()
        a.decide()
    assert not exporter.get_finished_spans()
    written = [one for one in spans if one.name == "submax.store.write"]
    assert sum(one.attributes["submax.appends"] for one in written) >= 6
    (fitted,) = [one for one in spans if one.name == "submax.refit"]
    assert dict(fitted.attributes) == {"submax.bandit": "a", "submax.rows": 3}
    assert fitted.end_time > fitted.start_time


@pytest.fixture
def collector():
    """Collects what is sent to its ``address``, in ``received``."""

    class Collecting(BaseHTTPRequestHandler):
        def do_POST(self):
            server.received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collecting)
    server.received, server.address = [], f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", [b"submax", b"shop"])
def test_a_server_sends_its_spans_under_its_name(serve, tmp_path, collector, name):
    given = {} if name == b"submax" else {"OTEL_SERVICE_NAME": name.decode()}
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
    server = serve(tmp_path / "a.db", 0, "--telemetry", **endpoint, **given)
    server.wait_ready()
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    sent = b"".join(collector.received)
    assert b"submax.ready" in sent
    # A text in OTLP has its length before it, and the name of the service is a text of its own.
    assert b"service.name\x12" + bytes([len(name) + 2]) + b"\n" + bytes([len(name)]) + name in sent


def test_without_the_extra_the_command_names_it(monkeypatch, tmp_path):
    monkeypatch.setattr(submax.core.running.extras, "find_spec", lambda name: None)
    file = tmp_path / "a.db"
    result = CliRunner().invoke(main, ["serve", str(file), "--telemetry"])
    assert result.exit_code == 2
    assert not file.exists()
