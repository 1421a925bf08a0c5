"""The page of scale computes what it says from measured costs, and its examples run."""

import csv
import re
from pathlib import Path

import pytest

import submax
from submax.live.store.store import Store

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "scale.md").read_text(encoding="utf-8")
SCALING = {
    "store": "PostgreSQL",
    "servers": "1",
    "bandits": "one bandit",
    "decides_per_s": "2000",
    "scaling": "1",
    "p50_ms": "3",
    "p99_ms": "9",
    "server_cpu_us": "350",
    "postgres_cpu_us": "70",
    "bytes_per_decision": "600",
    "cores": "4",
}
LOG = {"bytes_per_decision": 500, "read_events_per_s": 100_000, "export_rows_per_s": 50_000}


@pytest.fixture
def page(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "generators"))
    import growth_results
    import scale_page

    growth, scaling = tmp_path / "growth.csv", tmp_path / "scaling.csv"
    with growth.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(("log", "policy", "rows", "measure", "value", "machine"))
        for name, value in LOG.items():
            writer.writerow(("20 numbers", "", 1000, name, value, "a machine"))
        writer.writerow(("20 numbers", "the default", 1000, "update_cpu_ms", 40, "a machine"))
    with scaling.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, list(SCALING))
        writer.writeheader()
        writer.writerow(SCALING)
    monkeypatch.setattr(growth_results, "FILE", growth)
    monkeypatch.setattr(scale_page, "FILE", scaling)
    return scale_page


def test_capacities_follow_from_the_costs(page):
    capacity = {part.what: part.capacity for part in page.Costs.read().parts()}
    assert list(capacity.values()) == sorted(capacity.values())
    assert capacity["one server process"] == pytest.approx(0.7 * 1e6 / 350)
    assert capacity["one bandit in one database"] == 2000
    assert capacity["one database with 4 cores for itself"] == pytest.approx(0.7 * 4e6 / 70)
    reader = "the process that reads the log and fits versions"
    assert capacity[reader] == pytest.approx(0.7 * 100_000 / 2)


def test_the_verdict_names_what_is_not_enough_the_weakest_first(page):
    text = page.with_tables("<!-- verdict --><!-- verdict -->")
    month, second = [line for line in text.splitlines() if line.startswith("- ")]
    assert month.endswith("one of each is enough.")
    weakest = "one server process (50 needed), then one bandit in one database (50 needed)"
    assert weakest in second


def test_months_are_added_up(page):
    text = page.with_tables("<!-- space --><!-- space -->")
    assert "| 10⁹ a month | 1.0e+09 | 0.6 TB |  | 5.56 h | 5.56 h |" in text


def test_the_table_of_methods_is_that_of_the_contract():
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", PAGE, re.M))))
    assert {name for name in named if not hasattr(Store, name)} == set()
    assert named >= {"append", "read", "find", "put_blob", "try_lead", "delete_events"}


def test_decisions_and_rewards_of_a_unit_go_to_the_same_database(monkeypatch):
    (example,) = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "zlib" in one]
    names = {}
    exec(example, names)
    units = [f"visitor-{number}" for number in range(200)]
    chosen = [names["client_of"](unit) for unit in units]
    assert chosen == [names["client_of"](unit) for unit in units]
    assert set(map(id, chosen)) == set(map(id, names["CLIENTS"]))
    assert all(isinstance(one, submax.Client) for one in chosen)


def test_a_bandit_is_found_by_its_name():
    example = next(one for one in re.findall(r"```python\n(.*?)```", PAGE, re.S))
    names = {}
    exec(example, names)
    assert isinstance(names["client_of"]("checkout"), submax.Client)
