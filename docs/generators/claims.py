"""The statements of the paper, and ours, with their verdicts on published results."""

from collections.abc import Iterator
from typing import NamedTuple

from markdown_tables import table
from published import Rows, rows_of
from reasons import NOTES, REASONS

SECTIONS = {
    "illustration": "3.3",
    "bernoulli": "4.1",
    "contextual": "4.2",
    "contextual-wide": "4.2, truth of 100 units",
    "combinatorial": "4.3",
    "ablations": "4.3, footnote; contextual",
    "joint-ablations": "4.3, footnote; joint choices",
}
"""The section of the paper whose statements an experiment tests."""


class TestedClaim(NamedTuple):
    """A statement with all its comparisons, as rows of statements.csv."""

    experiment: str
    text: str
    comparisons: Rows

    @property
    def source(self) -> str:
        """Who makes the statement: "paper" or "submax"."""
        return self.comparisons[0]["source"]

    @property
    def quote(self) -> str:
        """The sentence of the paper, with its section."""
        return self.comparisons[0]["quote"]

    @property
    def verdict(self) -> str:
        """One of holds, does not hold, undecided."""
        return self.comparisons[0]["verdict"]

    @property
    def summary(self) -> str:
        """The verdict with the number of comparisons of each kind."""
        return self.comparisons[0]["summary"]

    @property
    def closest(self) -> str:
        """The comparison that supports the statement least, with the error of the difference."""
        row = next(row for row in self.comparisons if row["closest"] == "True")
        left, right = float(row["left_mean"]), float(row["right_mean"])
        error = float(row["standard_error_of_difference"])
        spread = "" if error != error else f", difference {right - left:+.3g} ± {error:.2g}"
        numbers = f"{row['left']} {left:.4g}, {row['right']} {right:.4g}"
        return f"{numbers}{spread} ({row['where']})"

    @property
    def reason(self) -> str:
        """Why the statement does not hold here, as far as we know; empty if there is none."""
        return REASONS.get(self.text, "")

    @property
    def note(self) -> str:
        """What a reader must know to judge the statement; empty if there is nothing."""
        return NOTES.get(self.text, "")


def claims_of(experiment: str, source: str) -> list[TestedClaim]:
    """The statements of this source that the experiment tests, in order."""
    by_text: dict[str, Rows] = {}
    for row in rows_of(experiment, "statements"):
        if row["source"] == source:
            by_text.setdefault(row["statement"], []).append(row)
    return [TestedClaim(experiment, text, rows) for text, rows in by_text.items()]


def overview() -> str:
    """A table of all statements of the paper with their verdicts."""
    body = (
        (section, claim.text, f"**{claim.verdict}**", claim.closest)
        for experiment, section in SECTIONS.items()
        for claim in claims_of(experiment, "paper")
    )
    return table(("section", "statement", "verdict", "closest comparison"), body)


def paper_claims(experiment: str) -> Iterator[str]:
    """Each sentence of the paper with the statements that test it, with notes and reasons."""
    by_quote: dict[str, list[TestedClaim]] = {}
    for claim in claims_of(experiment, "paper"):
        by_quote.setdefault(claim.quote, []).append(claim)
    for quote, claims in by_quote.items():
        yield f"> {quote}"
        yield claim_table(claims)
        yield from (f"*Note:* {claim.note}" for claim in claims if claim.note)
        reasons = dict.fromkeys(
            claim.reason for claim in claims if claim.reason and claim.verdict != "holds"
        )
        yield from (f"*Why:* {reason}" for reason in reasons)


def claim_table(claims: list[TestedClaim]) -> str:
    """A table of statements; in a comparison, the left number should be the lower one."""
    body = ((claim.text, claim.summary, claim.closest) for claim in claims)
    return table(("statement", "verdict", "closest comparison"), body)
