"""A recommended policy with its settings, its reason and what was measured."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from submax.recommendation.answers import Answers
from submax.recommendation.published_evidence import PublishedEvidence
from submax.recommendation.rule_table import Rule, Specification
from submax.recommendation.snippets import policies_toml

WIDTH = 88
"""Width of the printed sentences; what is pasted is not broken."""


@dataclass(frozen=True)
class Recommendation:
    """The policy for a problem.

    ``settings`` declare the bandit, beside its actions and its context. ``python`` and
    ``commands`` are ready to paste; only names have to be replaced. ``untested`` says what was not
    measured, and ``assumed`` which answers nobody gave.
    """

    answers: Answers
    rule: Rule
    settings: dict[str, Any]
    python: str
    commands: str
    evidence: tuple[PublishedEvidence, ...]
    untested: tuple[str, ...]
    assumed: tuple[str, ...] = ()

    @property
    def policy(self) -> Specification:
        """The policy, by name or as a table; ``submax.make_policy`` takes both."""
        return self.rule.policy

    @property
    def runner_up(self) -> Specification:
        """The second best policy for such problems, or a rival that was ahead somewhere."""
        return self.rule.runner_up

    @property
    def toml(self) -> str:
        """The policies of an experiment file that compares the two."""
        return policies_toml(self.policy, self.runner_up)

    def as_dict(self) -> dict[str, Any]:
        """Return everything in plain data."""
        rule = self.rule
        return {
            "answers": {
                "actions": list(self.answers.sizes) or self.answers.choose,
                "context": self.answers.context,
                "rewards": self.answers.rewards,
                "batch": self.answers.batch,
                "goal": self.answers.goal,
            },
            "assumed": list(self.assumed),
            "rule": rule.name,
            "policy": self.policy,
            "reason": rule.reason,
            "settings": self.settings,
            "runner_up": self.runner_up,
            "runner_up_reason": rule.runner_up_reason,
            "extras": dict(rule.extras),
            "measured": [
                {"sentence": str(one), "page": one.page, "url": one.url} for one in self.evidence
            ],
            "untested": list(self.untested),
            "toml": self.toml,
            "python": self.python,
            "commands": self.commands,
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        rule, titles = self.rule, [self._title("policy"), self._title("runner_up")]
        yield f"Problem: {self.answers.sentence}"
        yield from (f"Assumed: {one}" for one in self.assumed)
        yield f"\nPolicy: {titles[0]}"
        yield from _wrapped(rule.reason)
        yield f"\nRunner-up: {titles[1]}"
        yield from _wrapped(rule.runner_up_reason)
        yield "\nMeasured"
        for one in self.evidence:
            yield from _wrapped(str(one))
            yield f"    {one.url}"
        yield "\nNot tested"
        for sentence in self.untested:
            yield from _wrapped(sentence)
        for head, text in (
            ("In Python", self.python),
            ("By commands", self.commands),
            ("In an experiment file", self.toml),
        ):
            yield f"\n{head}\n{textwrap.indent(text, '  ')}"

    def _title(self, which: Literal["policy", "runner_up"]) -> str:
        extra = self.rule.extras.get(which)
        return self.rule.title(which) + (f' (pip install "submax[{extra}]")' if extra else "")


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(
        sentence, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
