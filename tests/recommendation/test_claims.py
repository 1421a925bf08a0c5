"""Every comparison in the sentences of the rules follows from published files, by claims.toml."""

import csv
import math
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from submax.recommendation.published_evidence import COLUMNS
from submax.recommendation.rule_table import rule_table

RESULTS = Path(__file__).parents[2] / "docs" / "results"
TABLE = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
CLAIMS, PAGES = TABLE["claims"], TABLE["pages"]
RULES = {rule.name: rule for rule in rule_table().rules}
COMPARES = re.compile(
    r"\b(?:least|less|lowest|lower|highest|higher|ahead|behind|second|third|beaten|better|best"
    r"|close|as good|times as|faster|nearest|earned more)\b"
)


class Result(NamedTuple):
    """What a policy reached in a published run; better results sort first."""

    value: float
    error: float
    policy: str

    def beats(self, other):
        """Whether the lead is above two standard errors, taken as independent."""
        return other.value - self.value > 2 * math.hypot(self.error, other.error)


@cache
def rows_of(data):
    with (RESULTS / data / "summary.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def results(check, where):
    """The results of all policies on one problem, the best first."""
    column = COLUMNS[check.get("measure", "regret")]
    sign = -1 if check.get("measure") == "reward" else 1
    error = column.replace("_mean", "_standard_error")
    return sorted(
        Result(sign * float(row[column]), float(row[error]), row["policy"])
        for row in rows_of(check["data"])
        if all(row[key] == value for key, value in where.items())
    )


def pair(check, where):
    found = {one.policy: one for one in results(check, where)}
    return found[check["better"]], found[check["than"]]


def problems(check):
    given = check.get("where", {})
    return given if isinstance(given, list) else [given]


def holds(check):
    """Whether the published file agrees with a check."""
    if "by" in check:
        values = {row[check["by"]] for row in rows_of(check["data"])}
        led = [better < than for better, than in (pair(check, {check["by"]: v}) for v in values)]
        return [sum(led), len(led)] == check["on"]
    return all(holds_on(check, where) for where in problems(check))


def holds_on(check, where):
    if "first" in check:
        found, count = results(check, where), len(check["first"])
        if [one.policy for one in found[:count]] != check["first"]:
            return False
        better, than = found[count - 1 : count + 1]
    else:
        better, than = pair(check, where)
    if "times" in check:
        return round(than.value / better.value) == check["times"]
    return better < than and check.get("decided") in (None, better.beats(than))


def sentences(rule):
    return " ".join((rule.reason, rule.runner_up_reason, *rule.untested))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: f"{one['rule']}: {one['words'][:40]}")
def test_the_claim_holds(claim):
    for check in claim["checks"]:
        assert holds(check), check


@pytest.mark.parametrize("claim", CLAIMS + PAGES, ids=lambda one: one["words"][:40])
def test_the_claim_is_made(claim):
    assert claim["words"] in sentences(RULES[claim["rule"]])


@pytest.mark.parametrize("name", RULES)
def test_every_comparison_is_a_claim(name):
    text = sentences(RULES[name])
    for claim in CLAIMS + PAGES:
        if claim["rule"] == name:
            text = text.replace(claim["words"], "")
    assert COMPARES.findall(text) == [], text


def test_a_claim_that_the_errors_do_not_decide_is_noticed():
    counts = {"data": "beyond/poisson", "where": {"arms": "5", "mean": "2"}}
    assert holds({**counts, "first": ["linear-thompson"]})
    assert not holds({**counts, "first": ["linear-thompson"], "decided": True})
    assert not holds({**counts, "first": ["random"]})
    assert not holds({**counts, "better": "random", "than": "linear-thompson"})


def test_tables_with_few_rewards_are_counted_as_on_the_page():
    page = (RESULTS / "bakeoff.md").read_text(encoding="utf-8")
    section = page.partition("\n## Rare rewards\n")[2].partition("\n## ")[0]
    lines = [line.split(" | ") for line in section.splitlines() if " ± " in line and " | " in line]
    numbers = [[float(re.search(r"\d+\.\d+", line[cell])[0]) for cell in (1, -1)] for line in lines]
    assert len(numbers) == 8
    assert sum(ours > best_peer for ours, best_peer in numbers) == 7
