"""The rules by which a policy is recommended, read from ``rules.toml``."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from submax.recommendation.answers import Answers
from submax.recommendation.condition import Condition
from submax.recommendation.published_evidence import PublishedEvidence
from submax.schema.known_type import known_type

Specification = str | dict[str, Any]
"""A policy by name, or as a table with its kind and parameters."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy and the second best for the problems that the condition ``when`` allows."""

    name: str
    when: Condition
    policy: Specification
    runner_up: Specification
    reason: str
    runner_up_reason: str
    untested: tuple[str, ...]
    evidence: tuple[str, ...]
    policy_title: str = ""
    runner_up_title: str = ""
    extras: dict[Literal["policy", "runner_up"], str] = {}
    deterministic: bool = False

    def title(self, which: Literal["policy", "runner_up"]) -> str:
        """Return the title of one of the two policies: that of its table, or its name."""
        return str(getattr(self, f"{which}_title") or getattr(self, which))


class Caveat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was not measured about some problems, whichever rule applies."""

    when: Condition
    text: str


class RuleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All rules in their order, the caveats, and the evidence by name."""

    rules: tuple[Rule, ...]
    caveats: tuple[Caveat, ...]
    evidence: dict[str, PublishedEvidence]

    def rule_for(self, answers: Answers) -> Rule:
        """Return the first rule whose condition allows the answers; a test shows there is one."""
        return next(rule for rule in self.rules if rule.when.allows(answers))

    def caveats_for(self, answers: Answers) -> tuple[str, ...]:
        """Return what else was not measured about such a problem."""
        return tuple(one.text for one in self.caveats if one.when.allows(answers))


@cache
def rule_table() -> RuleTable:
    """Return the table, which is read once in a process."""
    text = files("submax.recommendation").joinpath("rules.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), known_type(RuleTable))
