"""Learns the best of several policies from a log."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.errors import InputError
from submax.evaluation.choosing.one_policy import Specification, learn_one, variant_of
from submax.evaluation.choosing.standard_candidates import DEFAULT, standard_candidates
from submax.evaluation.choosing.training_length import training_warnings
from submax.evaluation.frames import data_frame
from submax.evaluation.logs.log import By, Log
from submax.evaluation.report.candidates import named
from submax.evaluation.report.comparison import Comparison, compare
from submax.evaluation.targets.variant import parsed_variant
from submax.schema.learned import MOST_ROWS, Learned

LEARNING_SHARE, CHOOSING_SHARE = 0.6, 0.5
"""Candidates learn from this share of the rows; this share of the others chooses among them, and
the rest reports the value of each."""
CHOOSING_ESTIMATOR = "dr"
"""The estimator by whose value the best candidate is chosen."""
FEWEST_ROWS = 1000
"""With fewer rows nothing is chosen: 200 rows or fewer would decide, which is mostly chance."""
MOST_CHOOSING_ROWS = 200_000
"""The choice uses at most about this many rows, spread evenly over the log."""


class BestPolicy(NamedTuple):
    """The ``winner`` among candidates, ``learned`` from all rows.

    ``choice`` compares the candidates on the rows by which the winner was chosen, and ``report`` on
    rows that took no part in learning or choosing; both are None if the log has too few rows.
    ``notes`` are sentences about the choice, and ``warnings`` those about training.
    """

    winner: str
    learned: Learned
    choice: Comparison | None
    report: Comparison | None
    notes: list[str]
    warnings: list[str]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each candidate: its value by which it was chosen, and the report."""
        if self.choice is None or self.report is None:
            return []
        return [
            {
                "policy": one.policy,
                "winner": one.policy == self.winner,
                "choosing_value": one.value,
                "estimator": reported.estimator,
                "value": reported.value,
                "low": reported.interval.low,
                "high": reported.interval.high,
                "warnings": " | ".join(reported.cautions),
            }
            for one, reported in zip(
                self.choice.recommended()[1:], self.report.recommended()[1:], strict=True
            )
        ]

    def to_pandas(self) -> Any:
        """Return a data frame with a row for each candidate."""
        return data_frame(self.rows())


def learn_best(
    log: Log,
    candidates: Sequence[Specification] | None = None,
    *,
    share: float = 1.0,
    by: By = "time",
    seed: int = 0,
    keep_rows: int = MOST_ROWS,
    level: float = 0.95,
) -> BestPolicy:
    """Return the best of several policies, by default of the ``standard_candidates`` of a log.

    Candidates learn from 60 % of the rows (the first by time, or random ones), and the one with the
    highest ``dr`` value on the next 20 % wins. The last 20 % report the values of all candidates,
    because that of a winner is too high on the rows by which it was chosen. The winner then learns
    again from all rows, or from a ``share`` of them.
    """
    options = {"share": share, "by": by, "seed": seed, "keep_rows": keep_rows}
    part = log if share == 1.0 else log.split(share, by, seed)[0]
    few = len(part) < FEWEST_ROWS
    standard = [DEFAULT] if few else standard_candidates(part)
    given = named(standard if candidates is None else list(candidates))
    if not given:
        raise InputError(
            "no candidate was given, and at least one is needed: name policies to choose from, or "
            "leave them out"
        )
    if len(given) == 1 or few:
        return _without_choice(log, given, len(part), options)
    step = -(-len(part) // MOST_CHOOSING_ROWS)
    thinned = part if step == 1 else part.rows(np.arange(0, len(part), step))
    first, rest = thinned.split(LEARNING_SHARE, by, seed)
    choosing, reporting = rest.split(CHOOSING_SHARE, by, seed)
    learned = _learned(first, given, seed)
    choice = compare(
        choosing, learned, estimators=[CHOOSING_ESTIMATOR], level=level, seed=seed, apart=True
    )
    report = compare(reporting, learned, level=level, seed=seed, apart=True)
    values = {one.policy: one.value for one in choice.estimates[1:]}
    winner = max(values, key=lambda name: np.nan_to_num(values[name], nan=-np.inf))
    best = learn_one(log, given[winner], **options)
    notes = [
        f"{winner} was chosen among {len(given)} policies by {CHOOSING_ESTIMATOR} on "
        f"{len(choosing)} rows, after learning from {len(first)}; the values are those on "
        f"{len(reporting)} other rows"
    ]
    if step > 1:
        notes.append(f"the choice used every {step}th row of the log")
    short = training_warnings(best.policy, len(part))
    return BestPolicy(winner, best, choice, report, notes + _about_variants(values), short)


def _without_choice(
    log: Log, given: dict[str, Any], rows: int, options: dict[str, Any]
) -> BestPolicy:
    name = next(iter(given))
    best = learn_one(log, given[name], **options)
    notes = []
    if rows < FEWEST_ROWS:
        notes = [
            f"{rows} rows are too few to choose among policies ({FEWEST_ROWS} are needed): "
            f"{name} was learned"
        ]
    return BestPolicy(name, best, None, None, notes, training_warnings(best.policy, rows))


def _learned(log: Log, given: dict[str, Any], seed: int) -> dict[str, Learned]:
    """Return all candidates, learned; a variant of a candidate is not learned again."""
    found: dict[str, Learned] = {}
    for name, candidate in given.items():
        variant = parsed_variant(candidate) if isinstance(candidate, str) else None
        if variant is not None and variant[0] in found:
            found[name] = variant_of(found[variant[0]], variant[1])
        else:
            found[name] = learn_one(log, candidate, seed=seed, keep_rows=0)
    return found


def _about_variants(values: dict[str, float]) -> list[str]:
    """Return a sentence for each variant: how much it changes the value of its policy."""
    found = []
    for name, value in values.items():
        base = name.rpartition("@")[0]
        if base in values:
            gain = value - values[base]
            verdict = "helps" if gain > 0 else "does not help"
            found.append(f"{name} {verdict}: {gain:+.4g} on the choosing rows against {base}")
    return found
