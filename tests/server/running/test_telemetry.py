"""Spans of requests, writes and fits, collected in memory."""

import subprocess
import sys
import warnings

import pytest
from click.testing import CliRunner
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import submax.core.running.extras
from submax.cli import main
from submax.core.running.spans import SPANS, UNOBSERVED
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
def http(serving, telemetry, tmp_path, trial):
    file = tmp_path / "page.db"
    open_bandit(file, actions=["A", "B"], background=False).close()
    service = Service(SQLiteStore(file), trial)
    pipeline = RequestPipeline(service, 1e6, Metrics(service.opened))
    pipeline.telemetry = telemetry
    return serving(service, pipeline=pipeline)


def test_a_request_is_a_span_of_the_callers_trace(http, exporter, eventually):
    eventually(lambda: http.get("/readyz").status_code == 200)
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


def test_writes_and_fits_are_spans(telemetry, exporter, tmp_path):
    with open_bandit(tmp_path / "a.db", actions=["A", "B"], reward_wait=0, background=False) as a:
        exporter.clear()
        for _ in range(3):
            a.reward(a.decide().id, 1.0)
        a.refit()
    spans = exporter.get_finished_spans()
    written = [one for one in spans if one.name == "submax.store.write"]
    assert sum(one.attributes["submax.appends"] for one in written) >= 6
    (fitted,) = [one for one in spans if one.name == "submax.refit"]
    assert dict(fitted.attributes) == {"submax.bandit": "a", "submax.rows": 3}
    assert fitted.end_time > fitted.start_time


def test_nobody_observes_afterwards(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    Telemetry(provider).close()
    assert SPANS.span("submax.store.write") is UNOBSERVED


def test_without_the_option_nothing_of_it_is_imported():
    script = (
        "import sys, submax.web.server.run, submax.cli; print([one for one in sys.modules if "
        "one.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_without_the_extra_the_command_names_it(monkeypatch, tmp_path):
    monkeypatch.setattr(submax.core.running.extras, "find_spec", lambda name: None)
    file = tmp_path / "a.db"
    result = CliRunner().invoke(main, ["serve", str(file), "--telemetry"])
    assert result.exit_code == 2
    assert not file.exists()


def test_the_name_of_the_service_can_be_given(monkeypatch):
    for given, name in ((None, "submax"), ("shop", "shop")):
        if given is not None:
            monkeypatch.setenv("OTEL_SERVICE_NAME", given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            telemetry = Telemetry.of_environment()
        assert telemetry._provider.resource.attributes["service.name"] == name
        telemetry.close()
