"""Learns the best of several policies from a log."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.errors import InputError
from submax.evaluation.choosing.one_policy import Specification, learn_one, variant_of
from submax.evaluation.choosing.race import FoldOfRace, Race
from submax.evaluation.choosing.standard_candidates import DEFAULT, standard_candidates
from submax.evaluation.choosing.training_length import training_warnings
from submax.evaluation.frames import data_frame
from submax.evaluation.logs.counted import DividedLog
from submax.evaluation.logs.dividing import divided
from submax.evaluation.logs.log import By, Log
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.report.candidates import named
from submax.evaluation.report.comparisons.comparison import Comparison, compare
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.evaluation.targets.variant import parsed_variant
from submax.schema.learned import MOST_ROWS, Learned

CHOOSING_SHARE = 0.8
"""Candidates are chosen by this share of the rows; the rest reports the value of each."""
QUARTERS = 4
"""Parts of the rows by which the best candidate is chosen. Candidates learn from three of them and
are evaluated on the fourth; those that are not clearly worse also in the other three ways."""
CHOOSING_ESTIMATOR = "dr"
"""The estimator by whose value the best candidate is chosen."""
FEWEST_ROWS = 1000
"""With fewer rows nothing is chosen: 200 rows or fewer would decide, which is mostly chance."""
MOST_CHOOSING_ROWS = 200_000
"""The choice uses at most about this many rows, spread evenly over the log."""


class BestPolicy(NamedTuple):
    """The ``winner`` among candidates, ``learned`` from all rows.

    ``race`` compares the candidates on the rows by which the winner was chosen, and ``report`` on
    rows that took no part in learning or choosing; both are None if the log has too few rows.
    ``notes`` are sentences about the choice, and ``warnings`` those about training.
    """

    winner: str
    learned: Learned
    race: Race | None
    report: Comparison | None
    notes: list[str]
    warnings: list[str]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each candidate: its value by which it was chosen, and the report.

        ``behind`` is how much more the winner earns on the rows by which it was chosen.
        """
        if self.race is None or self.report is None:
            return []
        return [
            {
                "policy": reported.policy,
                "winner": reported.policy == self.winner,
                "choosing_value": self.race.value(reported.policy),
                "choosing_rows": round(self.race.rows(reported.policy)),
                "behind": self.race.lead(self.winner, reported.policy).value,
                "behind_error": self.race.lead(self.winner, reported.policy).error,
                "estimator": reported.estimator,
                "value": reported.value,
                "low": reported.interval.low,
                "high": reported.interval.high,
                "warnings": " | ".join(reported.cautions),
            }
            for reported in self.report.recommended()[1:]
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

    Candidates learn from 60 % of the rows (the first by time, or random ones), and are compared by
    ``dr`` on the next 20 %. Those that are not clearly worse than the best one are also compared on
    the other three quarters of these 80 %, each time after learning from the rest, until one is
    left. The highest value wins. The last 20 % report the values of all candidates, because that of
    a winner is too high on the rows by which it was chosen. The winner then learns again from all
    rows, or from a ``share`` of them.
    """
    options: dict[str, Any] = {"share": share, "by": by, "seed": seed, "keep_rows": keep_rows}
    part = log if share == 1.0 else log.split(share, by, seed)[0]
    few = len(part) < FEWEST_ROWS
    if candidates is None:
        candidates = [DEFAULT] if few else standard_candidates(part)
    given: dict[str, Any] = named(list(candidates))
    if not given:
        raise InputError(
            "no candidate was given, and at least one is needed: name policies to choose from, or "
            "leave them out"
        )
    if len(given) == 1 or few:
        return _without_choice(log, given, len(part), options)
    step = -(-len(part) // MOST_CHOOSING_ROWS)
    thinned = part if step == 1 else part.rows(np.arange(0, len(part), step))
    choosing, reporting = thinned.split(CHOOSING_SHARE, by, seed)
    race, learned = raced(divided(choosing, QUARTERS, by, seed), given, seed)
    report = compare(reporting, learned, level=level, seed=seed, apart=True)
    winner = race.best()
    best = learn_one(log, given[winner], **options)
    notes = [*_about_choice(race, len(reporting)), *_about_variants(race)]
    if step > 1:
        notes.append(f"the choice used every {step}th row of the log")
    short = training_warnings(best.policy, len(part))
    return BestPolicy(winner, best, race, report, notes, short)


def raced(log: DividedLog, given: Mapping[str, Any], seed: int) -> tuple[Race, dict[str, Learned]]:
    """Return the comparison of the candidates, and what they learned for its first fold.

    The last part of the log is the first one on which they are compared.
    """
    estimator = make_off_policy(CHOOSING_ESTIMATOR)
    race, first, contenders = Race(list(given)), dict[str, Learned](), list(given)
    for held_out in reversed(range(int(log.part.max()) + 1)):
        others = log.log.rows(log.part != held_out)
        learned = _learned(others, {name: given[name] for name in contenders}, seed)
        rows = log.log.rows(log.part == held_out).with_estimated_propensities(seed)
        logged = LoggedEvidence(rows, seed)
        about = {name: logged.about(one) for name, one in learned.items()}
        terms = {name: one.terms(estimator) for name, one in about.items()}
        race = race._replace(folds=(*race.folds, FoldOfRace.of(about, terms)))
        first, contenders = first or learned, race.contenders()
        if len(contenders) == 1:
            break
    return race, first


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


def _learned(log: Log, given: Mapping[str, Any], seed: int) -> dict[str, Learned]:
    """Return all candidates, learned; a variant of a candidate is not learned again."""
    found: dict[str, Learned] = {}
    for name, candidate in given.items():
        variant = parsed_variant(candidate) if isinstance(candidate, str) else None
        if variant is not None and variant[0] in found:
            found[name] = variant_of(found[variant[0]], variant[1])
        else:
            found[name] = learn_one(log, candidate, seed=seed, keep_rows=0)
    return found


def _about_choice(race: Race, reported: int) -> list[str]:
    """Return sentences about which candidate was chosen, and which ones may be as good."""
    winner = race.best()
    notes = [
        f"{winner} was chosen among {len(race.names)} policies by {CHOOSING_ESTIMATOR} on "
        f"{race.rows(winner):.0f} rows from which it had not learned; the values are those on "
        f"{reported} other rows"
    ]
    close = [name for name in race.contenders() if name != winner]
    if close:
        leads = [(name, race.lead(winner, name)) for name in close]
        rivals = ", ".join(
            f"{name} (behind by {one.value:.2g} ± {one.error:.2g})" for name, one in leads
        )
        notes.append(f"these rows do not tell {winner} from {rivals}")
    return notes


def _about_variants(race: Race) -> list[str]:
    """Return a sentence for each variant: whether it clearly changes the value of its policy."""
    found = []
    for name in race.names:
        base = name.rpartition("@")[0]
        if base in race.names:
            gain = race.lead(name, base)
            verdict = "helps" if gain.value > 0 else "hurts"
            text = f"{name} {verdict if gain.is_clear else 'makes no clear difference'}"
            found.append(
                f"{text}: {gain.value:+.2g} ± {gain.error:.2g} on the choosing rows against {base}"
            )
    return found
