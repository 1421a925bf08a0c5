"""Spans of requests, writes and fits."""

from click.testing import CliRunner
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from waiting import wait_until

import submax.core.optional
from submax.cli import main
from submax.server.observing import Telemetry

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
