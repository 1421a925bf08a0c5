"""Every query of the board and of the alerts is about a metric that a server really has."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from waiting import wait_until

from submax.bandit.declaring import declare

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
