"""What a store says about a bandit: counts, arms, series, segments, delays, lift, decisions.

Sums of decisions and rewards by hour are kept in the table ``summary``, which ``advance`` brings up
to date. A look adds what has happened since then, so it is right whether or not a process keeps the
table, and takes as long as what is new.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist
from threading import Lock
from typing import Any, NamedTuple

import msgspec
import numpy as np

from submax.bandit.arms import AVERAGED_CONTEXTS, ArmStatus, Tally, arm_statuses, rail_notices
from submax.bandit.assignment import ExperimentAssignment
from submax.bandit.decision import LiftReport
from submax.bandit.declaring import DeclaredBandit, count_decisions, newest_version, read_bandit
from submax.bandit.lift import GroupComparison, compare, lift_reports, new_comparisons
from submax.bandit.row_texts import choice_names, read_action, read_choices, read_contexts, read_key
from submax.bandit.settings import Settings
from submax.bandit.store import Store
from submax.bandit.tables import DECISION_COLUMNS, DecisionRow, Statement, decision_row
from submax.bandit.training_rows import (
    LEARNED,
    NEVER_ACTIVATED,
    STATUSES,
    Matured,
    TrainingRows,
    status_sql,
    wait_of,
)
from submax.core.arrays import Booleans, Floats
from submax.core.decoding import known_type
from submax.core.errors import NotFoundError
from submax.core.summary import counted
from submax.schema.actions import ActionSpec
from submax.schema.context import Category
from submax.schema.names import Action

MIN_FIRST_ROWS = 10
"""Rows for the first version: with one or two rows a policy would favour an action by chance."""
HOUR = 3600
"""Seconds of an interval of the table ``summary``."""
BINS = 26
"""Bins of delays: below 1 s, 1 to 2 s, 2 to 4 s, …, and more than 2²⁴ s, about half a year."""
DELAY_BIN = " + ".join(
    f"case when r.at - d.at > {2**place} then 1 else 0 end" for place in range(BINS - 1)
)
"""SQL for the bin of the delay of the reward ``r`` of the decision ``d``."""
HOLDOUT, PAUSED = "holdout", "paused"
"""Parts of the decisions that are not learned from; others are control, bandit and no group."""
SUMS = Tally.__struct_fields__
KEY = ("kind", "bucket", "slot", "choice", "part")
"""Columns of ``summary``: those of its key, which has an interval or a version as ``bucket``."""
SEGMENT_DECISIONS = 20_000
"""Segments are those of so many decisions, the newest that have matured: reading contexts takes 5
to 10 µs each."""
LISTED_DECISIONS = 25
FEWEST_REWARDS = 30
"""Rewards of an arm, and of all others, below which nothing is said about delays."""
RARE = 0.001
"""The chance of a wrong sentence about any arm at one look, if arms are alike."""
MARGIN_SECONDS = 60.0
"""A row may become visible so long after the time that it has."""
Key = tuple[str, int, str, str, str]
DELETED: Key = ("status", 0, "", "deleted", "")
"""The row of ``summary`` that counts decisions that were deleted before they matured."""


# Sums of what has happened


class ProgressState(msgspec.Struct):
    """What cannot be summed: lift, which depends on the order, and the smallest propensity."""

    comparisons: dict[str, GroupComparison]
    smallest: float | None = None


class Progress(NamedTuple):
    """Up to when decisions and rewards were read, and decisions followed until they matured."""

    decided: float
    matured: float
    state: bytes


class Fold:
    """Sums over what has happened after some time: ``sums`` are rows of ``summary``."""

    def __init__(
        self, store: Store, declared: DeclaredBandit, progress: Progress | None, step: int = HOUR
    ) -> None:
        """``step`` is the length of an interval in seconds; that of the table is an hour."""
        self._store, self._declared, self._step = store, declared, step
        self.settings, self.menu = declared.settings, declared.menu
        self._rows = TrainingRows(store, declared.n, self.settings, self.menu)
        self.sums: dict[Key, Floats] = {}
        if progress is None:
            wait = wait_of(self.settings)
            # Nothing was decided before the first decision, whatever the clock says.
            self.decided, self.matured = -1.0, -1.0 if wait == math.inf else wait - 1.0
            self.state = ProgressState(new_comparisons(self.settings))
        else:
            self.decided, self.matured, state = progress
            self.state = msgspec.msgpack.decode(state, type=known_type(ProgressState))

    @property
    def progress(self) -> Progress:
        return Progress(self.decided, self.matured, msgspec.msgpack.encode(self.state))

    def copy(self) -> "Fold":
        """A copy that can be advanced by itself."""
        found = Fold(self._store, self._declared, self.progress, self._step)
        found.sums = dict(self.sums)
        return found

    def advance(self, until: float) -> None:
        """Add everything up to a time."""
        if until > self.decided:
            self._add_decided(until)
            self._add_rewards(until)
            self.decided = until
        if until > self.matured:
            for matured in self._rows.matured(self.matured, until):
                self._add_matured(matured)
            self.matured = until

    def _grouped(self, sql: str, until: float) -> Iterator[tuple[Any, ...]]:
        values = {"bandit": self._declared.n, "after": self.decided, "until": until}
        return itertools.chain.from_iterable(self._store.stream(sql, **values))

    def _add_decided(self, until: float) -> None:
        sql = (
            f"select cast(floor(at / {self._step}.0) as bigint), action, "
            "case when paused = 1 then 'paused' else coalesce(assignment, '') end, "
            "version, count(*), min(propensity) from decision "
            "where bandit = :bandit and at > :after and at <= :until group by 1, 2, 3, 4"
        )
        for bucket, action, part, version, count, least in self._grouped(sql, until):
            if part not in (HOLDOUT, PAUSED):
                known = self.state.smallest
                self.state.smallest = least if known is None else min(known, least)
            self._add_decisions(bucket, action, part, version, [count])

    def _add_rewards(self, until: float) -> None:
        sql = (
            f"select d.action, {DELAY_BIN}, sum(r.late), count(*) from reward r "
            "join decision d on d.n = r.decision "
            "where r.bandit = :bandit and r.at > :after and r.at <= :until group by 1, 2"
        )
        for action, place, late, count in self._grouped(sql, until) if self.menu.plain else ():
            self._add("delay", place, "", action, "", [count, int(late)])

    def _add_matured(self, matured: Matured) -> None:
        table, by_default = matured.table, (matured.status == LEARNED) & ~matured.rewarded
        for status, count in Counter(matured.status.tolist()).items():
            self._add("status", 0, "", STATUSES[status], "", [count])
        if by_default.any():
            self._add("status", 0, "", "by default", "", [by_default.sum()])
        # The propensity of several slots is that of their joint action, not of one choice.
        weight = 1 / np.array(table["propensity"]) if self.menu.plain else 1.0
        columns = [np.zeros(len(matured.reward)), *reward_columns(matured, weight)]
        buckets = (np.array(table["at"]) // self._step).astype(np.int64).tolist()
        groups = zip(buckets, table["action"], parts_of(table), table["version"], strict=True)
        for (bucket, action, part, version), sums in grouped(groups, columns):
            self._add_decisions(bucket, action, part, version, sums)
        self._compare(matured)

    def _add_decisions(
        self, bucket: int, action: str, part: str, version: int, sums: Sequence[float] | Floats
    ) -> None:
        """Add to the sums of each choice; with slots also to those of all choices together."""
        self._add("hour", bucket, "", action if self.menu.plain else "", part, sums)
        if not self.menu.plain:
            named = msgspec.json.decode(action)
            for slot in self.menu.slots:
                self._add("hour", bucket, slot.name, named[slot.name], part, sums)
        self._add("version", version, "", "", part, sums)

    def _add(
        self,
        kind: str,
        bucket: int,
        slot: str,
        choice: str,
        part: str,
        sums: Sequence[float] | Floats,
    ) -> None:
        """Add to a row of ``summary`` the first of its sums, or all of them."""
        row = np.zeros(len(SUMS))
        row[: len(sums)] = sums
        known = self.sums.get((kind, bucket, slot, choice, part))
        self.sums[kind, bucket, slot, choice, part] = row if known is None else known + row

    def _compare(self, matured: Matured) -> None:
        """Add decisions of groups to the comparisons, in the order in which they matured."""
        names = ("assigned_since", "assignment", "holdout_share", "control_share", "unit")
        columns = [matured.table[name] for name in names]
        known = np.flatnonzero(is_known(matured)).tolist()
        which = [place for place in known if columns[1][place] is not None]
        if not which or self._step != HOUR:
            return
        since, group, holdout, control, units = ([one[place] for place in which] for one in columns)
        groups = [
            ExperimentAssignment(revision, name, held or 0.0, controlled or 0.0)
            for revision, name, held, controlled in zip(since, group, holdout, control, strict=True)
        ]
        compare(self.state.comparisons, groups, matured.reward[which], units)


def is_known(matured: Matured) -> Booleans:
    """Of which decisions the reward is known, also by default."""
    return (matured.status != NEVER_ACTIVATED) & ~np.isnan(matured.reward)


def reward_columns(matured: Matured, weight: Floats | float) -> list[Any]:
    """Of each decision what is summed in SUMS about its reward, if it is known."""
    known = is_known(matured)
    r, w = np.where(known, matured.reward, 0.0), known * weight
    return [known, known & matured.rewarded, r, r**2, w, w**2, w * r, w * (w * r), (w * r) ** 2]


def parts_of(table: dict[str, Any]) -> list[str]:
    """The part that each decision belongs to."""
    rows = zip(table["assignment"], table["paused"], strict=True)
    return [PAUSED if stopped else group or "" for group, stopped in rows]


def grouped(groups: Iterable[Any], columns: Iterable[Any]) -> Iterator[tuple[Any, Floats]]:
    """Each different group, and the sums of its rows of all columns."""
    codes: dict[Any, int] = {}
    code = [codes.setdefault(group, len(codes)) for group in groups]
    table = [np.bincount(code, column, len(codes)) for column in columns]
    return zip(codes, np.stack(table, axis=1), strict=True)


UPSERT = (
    f"insert into summary (bandit, {', '.join(KEY)}, {', '.join(SUMS)}) "
    f"values (:bandit, :{', :'.join(KEY)}, :{', :'.join(SUMS)}) "
    f"on conflict (bandit, {', '.join(KEY)}) do update set "
    + ", ".join(f"{one} = summary.{one} + excluded.{one}" for one in SUMS)
)


def read_progress(store: Store, bandit: int) -> Progress | None:
    """How far ``summary`` is; None if nothing was summed yet."""
    found = store.select(
        "select decided, matured, state from progress where bandit = :bandit", bandit=bandit
    )
    return Progress(found[0][0], found[0][1], bytes(found[0][2])) if found else None


def advance(store: Store, declared: DeclaredBandit) -> None:
    """Bring the sums of a bandit up to date. One process at a time may do so for a bandit."""
    progress = read_progress(store, declared.n)
    fold = Fold(store, declared, progress)
    fold.advance(store.tick(declared.n))
    if not fold.sums and progress is not None:
        return
    before = -1.0 if progress is None else progress.decided
    # Required: if another process was first, nothing is added twice.
    first = Statement(
        "insert into progress (bandit, decided, matured, state) "
        "values (:bandit, :decided, :matured, :state) "
        "on conflict (bandit) do update set decided = excluded.decided, "
        "matured = excluded.matured, state = excluded.state where progress.decided = :before",
        {"bandit": declared.n, "before": before, **fold.progress._asdict()},
        required=True,
    )
    store.execute([first, *summary_statements(declared.n, fold.sums)])


def summary_statements(bandit: int, sums: Mapping[Key, Floats]) -> list[Statement]:
    """The statements that add sums to ``summary``."""
    names = ("bandit", *KEY, *SUMS)
    rows = ((bandit, *key, *each.tolist()) for key, each in sums.items())
    return [Statement(UPSERT, dict(zip(names, row, strict=True))) for row in rows]


# Answers


class Cell(NamedTuple):
    """The sums of one choice and part in an interval that begins ``at`` a time."""

    at: float
    choice: str
    part: str
    sums: Tally


class ArmDelay(msgspec.Struct, frozen=True, kw_only=True):
    """How long the rewards of an arm take.

    ``rewards`` is how many came, ``median`` the seconds that half of them exceed, and ``late`` the
    share that came too late to be learned from. ``of_others`` is the median of all other arms.
    ``notable``: the arm is later than the others by more than chance explains, and late enough to
    make its numbers wrong.
    """

    choice: str
    rewards: int
    median: float
    late: float
    of_others: float | None
    notable: bool


class FoundReward(msgspec.Struct, frozen=True):
    """A reward of a decision, ``seconds`` after it; ``parts`` if rewards have names or slots."""

    key: str
    value: float
    at: float
    seconds: float
    late: bool
    parts: dict[str, float] | None
    source: str


class ListedDecision(msgspec.Struct, frozen=True):
    """A decision in a list."""

    id: str
    at: float
    action: Action
    propensity: float
    version: int
    unit: str | None
    holdout: bool


class FoundDecision(msgspec.Struct, frozen=True):
    """A decision as it was made, with the rewards that came for it.

    ``group`` is empty if no guard rail sets decisions apart. ``eligible`` are the choices of each
    slot, ``probabilities`` those of their joint actions; None if they were too many.
    ``activated_at`` is when it was carried out, None if it was not.
    """

    id: str
    at: float
    action: Action
    propensity: float
    version: int
    unit: str | None
    group: str
    paused: bool
    activated_at: float | None
    context: dict[str, Any]
    eligible: list[list[str]]
    probabilities: list[float] | None
    status: str
    rewards: list[FoundReward]


class EarlyReward(NamedTuple):
    """A reward that waits in quarantine for its decision, until a time."""

    id: str
    key: str
    value: float
    at: float
    until: float
    source: str


class Segment(NamedTuple):
    """Contexts with these values of one or two fields, and what was chosen for them.

    All rows have the same weight in the sums of ``choices``, which is fair enough in a segment.
    """

    values: tuple[str, ...]
    choices: dict[str, Tally]

    @property
    def decisions(self) -> int:
        """The number of decisions in the segment."""
        return round(sum(one.decisions for one in self.choices.values()))

    @property
    def mean(self) -> float | None:
        """The mean reward in the segment."""
        return Tally.total(self.choices.values()).mean


class BanditReader:
    """Answers questions about one bandit, whose ``declared`` state the caller keeps up to date.

    Nothing is written, and no policy is built, so no code of a user is run.
    """

    def __init__(self, store: Store, declared: DeclaredBandit) -> None:
        self.store, self.declared = store, declared
        self._kept: Fold | None = None
        self._base: object = None
        self._lock = Lock()

    @classmethod
    def of(cls, store: Store, name: str) -> "BanditReader":
        """A reader of the bandit with this name."""
        return cls(store, read_bandit(store, name))

    @property
    def settings(self) -> Settings:
        return self.declared.settings

    @property
    def menu(self) -> ActionSpec:
        return self.declared.menu

    def now(self) -> float:
        return self.store.now(self.declared.n)

    def select(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query, with the number of the bandit as ``:bandit``."""
        return self.store.select(sql, bandit=self.declared.n, **values)

    def _tail(self) -> Fold:
        """What has happened since ``summary`` was brought up to date."""
        progress = read_progress(self.store, self.declared.n)
        base, now = (self.declared.revision, progress), self.now()
        with self._lock:
            if self._kept is None or self._base != base:
                self._kept, self._base = Fold(self.store, self.declared, progress), base
            self._kept.advance(now - MARGIN_SECONDS)
            tail = self._kept.copy()
        tail.advance(now)
        return tail

    def sums(
        self,
        kind: str,
        by: Sequence[str],
        *,
        first: int = 0,
        step: int = 1,
        slot: str | None = None,
    ) -> dict[tuple[Any, ...], Tally]:
        """Sums of a kind, grouped by columns of ``summary``; ``step`` joins intervals."""
        names = [f"bucket / {step}" if one == "bucket" and step > 1 else one for one in by]
        columns = ", ".join([*names, *(f"sum({one})" for one in SUMS)])
        which = "bandit = :bandit and kind = :kind and bucket >= :first"
        if slot is not None:
            which += " and slot = :slot"
        sql = f"select {columns} from summary where {which} group by {', '.join(names)}"
        found = defaultdict[tuple[Any, ...], Floats](lambda: np.zeros(len(SUMS)))
        for row in self.select(sql, kind=kind, first=first, slot=slot):
            found[row[: len(by)]] += np.array(row[len(by) :], np.float64)
        places = [KEY.index(one) for one in by]
        for key, sums in self._tail().sums.items():
            if key[0] == kind and key[1] >= first and slot in (None, key[2]):
                joined = (kind, key[1] // step, *key[2:])
                found[tuple(joined[place] for place in places)] += sums
        return {key: Tally(*sums.tolist()) for key, sums in sorted(found.items())}

    def own_sums(self, kind: str, by: Sequence[str], **which: Any) -> dict[tuple[Any, ...], Tally]:
        """As ``sums``, without decisions that were held out or made while paused."""
        found = defaultdict[tuple[Any, ...], list[Tally]](list)
        for (*key, part), sums in self.sums(kind, [*by, "part"], **which).items():
            if part not in (HOLDOUT, PAUSED):
                found[tuple(key)].append(sums)
        return {key: Tally.total(sums) for key, sums in found.items()}

    def counts(self) -> dict[str, int]:
        """Counts of events, and of what became of decisions."""
        stored = self.select(
            "select decisions, rewards, late_rewards, orphans, dropped from counts "
            "where bandit = :bandit"
        )
        decisions, rewards, late, orphans, dropped = stored[0] if stored else (0,) * 5
        ((waiting, expired),) = self.select(
            "select count(*), coalesce(sum(case when until <= :now then 1 else 0 end), 0) "
            "from early_reward where bandit = :bandit",
            now=self.now(),
        )
        status = {
            name: round(one.decisions) for (name,), one in self.sums("status", ["choice"]).items()
        }
        return {
            "decisions": decisions,
            "rewards": rewards - late + int(waiting),
            "late rewards": late,
            "orphans": orphans + int(expired),
            "dropped from quarantine": dropped,
            "matured": sum(count for name, count in status.items() if name != "by default"),
            **status,
        }

    def early_rewards(self, limit: int = 100) -> list[EarlyReward]:
        """Rewards that wait for their decisions, the newest first."""
        rows = self.select(
            "select id, key, value, at, until, source from early_reward "
            "where bandit = :bandit and until > :now order by until desc, n desc limit :limit",
            now=self.now(),
            limit=limit,
        )
        return [EarlyReward(one, read_key(key), *rest) for one, key, *rest in rows]

    def tallies(self) -> list[list[Tally]]:
        """Decisions and rewards of every choice of each slot since the beginning.

        Decisions that were held out or made while paused are counted, and not learned from.
        """
        every = self.sums("hour", ["slot", "choice"])
        learned = self.own_sums("hour", ["slot", "choice"])
        return [
            [
                msgspec.structs.replace(
                    learned.get((slot.name, one.name), Tally()),
                    decisions=every.get((slot.name, one.name), Tally()).decisions,
                )
                for one in slot.choices
            ]
            for slot in self.menu.slots
        ]

    def arms(self, probabilities: Floats | None = None) -> list[ArmStatus]:
        """The decisions, share and reward rate of each choice.

        ``probabilities`` are those of the active joint actions at the next decision, if known.
        """
        return arm_statuses(self.settings, self.menu, self.tallies(), probabilities)

    def totals(self) -> dict[str, Tally]:
        """The sums of all decisions by part: ``holdout``, ``control``, ``bandit``, ``paused``."""
        return {part: sums for (part,), sums in self.sums("hour", ["part"], slot="").items()}

    def series(
        self, since: float | None = None, *, step: float = HOUR, slot: str = ""
    ) -> list[Cell]:
        """Sums by time, choice and part, oldest first, in steps of whole hours.

        Without a ``slot``, choices of several slots are taken together.
        """
        hours = max(1, round(step / HOUR))
        first, by = math.floor((since or 0.0) / HOUR), ["bucket", "choice", "part"]
        found = self.sums("hour", by, first=first, step=hours, slot=slot)
        return [
            Cell(at * hours * HOUR, choice, part, sums)
            for (at, choice, part), sums in found.items()
        ]

    def recent(
        self, decisions: int = SEGMENT_DECISIONS, *, step: int = 60, slot: str = ""
    ) -> tuple[float, list[Cell]]:
        """The time of the newest of so many decisions, and sums of what has happened since.

        Decisions count when they were made, and rewards when the decision matured; both are in the
        interval in which the decision was made. Intervals have ``step`` seconds. Without a
        ``slot``, choices of several slots are taken together.
        """
        found = self.select(
            "select at from decision where bandit = :bandit order by at desc limit 1 offset :count",
            count=decisions,
        )
        since = float(found[0][0]) if found else -1.0
        state = msgspec.msgpack.encode(ProgressState(new_comparisons(self.settings)))
        fold = Fold(self.store, self.declared, Progress(since, since, state), step)
        fold.advance(self.now())
        return since, [
            Cell(float(interval * step), choice, part, Tally(*sums.tolist()))
            for (kind, interval, name, choice, part), sums in sorted(fold.sums.items())
            if kind == "hour" and name == slot
        ]

    def by_version(self) -> dict[int, Tally]:
        """The sums of the decisions of each version, without those that are held out."""
        return {number: sums for (number,), sums in self.own_sums("version", ["bucket"]).items()}

    def smallest_propensity(self) -> float | None:
        """The smallest probability with which an action was drawn; None before the first."""
        return self._tail().state.smallest

    def lift(self) -> list[LiftReport]:
        """How much more a decision of the bandit earns than one of the holdout and the control."""
        comparisons = self._tail().state.comparisons
        return lift_reports(self.settings, comparisons, self.declared.groups_since)

    def delays(self) -> list[ArmDelay]:
        """How long the rewards of each arm take, the slowest first; of plain arms only."""
        tables = defaultdict[str, Floats](lambda: np.zeros((BINS, 2)))
        for (place, choice), one in self.sums("delay", ["bucket", "choice"]).items():
            tables[choice][place] = one.decisions, one.known
        total = sum(tables.values(), np.zeros((BINS, 2)))
        slots = self.menu.slots if self.menu.plain else ()
        active = {one.name for slot in slots for one in slot.choices if one.status == "active"}
        found = []
        for choice, table in tables.items():
            rewards, late = table.sum(axis=0).tolist()
            others = total - table
            found.append(
                ArmDelay(
                    choice=choice,
                    rewards=round(rewards),
                    median=median_delay(table[:, 0]) or 0.0,
                    late=late / rewards,
                    of_others=median_delay(others[:, 0]),
                    notable=choice in active and self._is_late(table, others, len(tables)),
                )
            )
        return sorted(found, key=lambda one: -one.median)

    def _is_late(self, own: Floats, others: Floats, arms: int) -> bool:
        """Whether an arm is late so that its numbers are wrong, and later than the others.

        If decisions wait for rewards for a limited time, the share of late rewards is compared;
        else the share that takes longer than nine tenths of the others'.
        """
        counts = own[:, 0].sum(), others[:, 0].sum()
        if min(counts) < FEWEST_REWARDS:
            return False
        if math.isfinite(self.settings.longest_wait):
            shares, least = (own[:, 1].sum() / counts[0], others[:, 1].sum() / counts[1]), 0.05
        else:
            slow = np.cumsum(others[:, 0]) >= 0.9 * counts[1]
            slow[np.argmax(slow)] = False
            shares, least = (own[slow, 0].sum() / counts[0], others[slow, 0].sum() / counts[1]), 0.5
        pooled = (shares[0] * counts[0] + shares[1] * counts[1]) / sum(counts)
        error = math.sqrt(max(pooled * (1 - pooled) * (1 / counts[0] + 1 / counts[1]), 1e-24))
        far = (shares[0] - shares[1]) / error > NormalDist().inv_cdf(1 - RARE / arms)
        return bool(shares[0] >= max(least, 2 * shares[1]) and far)

    def newest_decisions(
        self, unit: str | None = None, *, limit: int = LISTED_DECISIONS
    ) -> list[ListedDecision]:
        """The newest decisions, or those of one unit, newest first."""
        which, order = ("", "at desc, n") if unit is None else ("and unit = :unit", "n")
        rows = self.select(
            "select id, at, action, propensity, version, unit, assignment from decision "
            f"where bandit = :bandit {which} order by {order} desc limit :limit",
            limit=limit,
            unit=unit,
        )
        return [
            ListedDecision(
                name, at, read_action(self.menu, action), propensity, version, who, group == HOLDOUT
            )
            for name, at, action, propensity, version, who, group in rows
        ]

    def row(self, identifier: str) -> DecisionRow | None:
        """The stored decision with this id."""
        sql = f"select {DECISION_COLUMNS} from decision where bandit = :bandit and id = :id"
        rows = self.select(sql, id=identifier)
        return decision_row(rows[0]) if rows else None

    def find_decision(self, identifier: str) -> FoundDecision | None:
        """The decision with this id, with its rewards; None if there is none."""
        row = self.row(identifier)
        if row is None:
            return None
        eligible, probabilities = read_choices(self.menu, row.eligible, row.probabilities)
        ((status,),) = self.store.select(
            f"select {status_sql(self.settings, settled=True)} from decision d where d.n = :n",
            n=row.n,
            clock=self.now(),
        )
        rewards = self.store.select(
            "select key, value, at, late, parts, source from reward where decision = :n order by n",
            n=row.n,
        )
        return FoundDecision(
            row.id,
            row.at,
            read_action(self.menu, row.action),
            row.propensity,
            row.version,
            row.unit,
            row.assignment or "",
            row.paused,
            None if row.activated is None else row.at + row.activated,
            dict(zip(self.settings.context.names, *read_contexts([row.context]), strict=False)),
            choice_names(self.menu, eligible),
            probabilities,
            status,
            [
                FoundReward(
                    read_key(key), value, at, at - row.at, bool(late),
                    msgspec.json.decode(parts) if parts else None, source,
                )
                for key, value, at, late, parts, source in rewards
            ],
        )  # fmt: skip

    def recent_contexts(self, count: int = AVERAGED_CONTEXTS) -> list[str]:
        """The newest contexts as JSON, over which probabilities are averaged."""
        rows = self.select(
            "select context from decision where bandit = :bandit and context is not null "
            "order by at desc, n desc limit :count",
            count=count,
        )
        return [context for (context,) in rows]

    def segments(
        self,
        first: str,
        second: str | None = None,
        *,
        slot: str = "",
        decisions: int = SEGMENT_DECISIONS,
    ) -> list[Segment]:
        """What was chosen for which contexts, by one field or two crossed, the most frequent first.

        Numbers are divided into fifths. Of all decisions that have matured the newest are taken,
        without those that were held out, or made while the bandit was paused.
        """
        context = self.settings.context
        fields = [first] if second is None else [first, second]
        for name in fields:
            if name not in context.names:
                raise NotFoundError(
                    f"there is no context field {name!r:.60}: the fields are "
                    f"{', '.join(context.names)[:300] or 'none'}"
                )
        contexts, actions, columns = list[Any](), list[str](), list[Floats]()
        for matured in self._newest_matured(decisions):
            parts = parts_of(matured.table)
            own = np.array([part not in (HOLDOUT, PAUSED) for part in parts])
            kept = matured.rows(np.flatnonzero(own))
            columns.append(np.stack([np.ones(len(kept.reward)), *reward_columns(kept, 1.0)]))
            contexts += read_contexts(kept.table["context"])
            actions += kept.table["action"]
        if not contexts:
            return []
        labels = zip(*(self._labels(name, contexts) for name in fields), strict=True)
        if not self.menu.plain:
            actions = [str(msgspec.json.decode(one).get(slot)) for one in actions]
        found = defaultdict[Any, dict[str, Tally]](dict)
        for (values, choice), sums in grouped(
            zip(labels, actions, strict=True), np.concatenate(columns, axis=1)
        ):
            found[values][choice] = Tally(*sums.tolist())
        segments = [
            Segment(values, dict(sorted(choices.items(), key=lambda one: -one[1].decisions)))
            for values, choices in found.items()
        ]
        return sorted(segments, key=lambda one: -one.decisions)

    def _newest_matured(self, decisions: int) -> Iterator[Matured]:
        """The newest decisions that have matured, oldest first."""
        rows = TrainingRows(self.store, self.declared.n, self.settings, self.menu)
        now = self.now()
        age = wait_of(self.settings) if self.settings.reward_wait > 0 else 0.0
        found = self.select(
            "select at from decision where bandit = :bandit and at <= :until "
            "order by at desc limit 1 offset :count",
            until=now - age,
            count=decisions,
        )
        return rows.matured(found[0][0] + age if found else age - 1.0, now)

    def _labels(self, name: str, contexts: list[list[Any]]) -> list[str]:
        place = self.settings.context.names.index(name)
        values = [row[place] if place < len(row) else None for row in contexts]
        if isinstance(self.settings.context.fields[place], Category):
            return [str(value) for value in values]
        numbers = np.array([math.nan if one is None else one for one in values], np.float64)
        edges = np.unique(np.nanquantile(numbers, [0.2, 0.4, 0.6, 0.8])).tolist()
        between = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(edges)]
        names = [f"below {edges[0]:.3g}", *between, f"{edges[-1]:.3g} or more"]
        return [names[one] for one in np.searchsorted(edges, numbers, side="right").tolist()]

    def waiting(self) -> str | None:
        """How many decisions wait for rewards and when learning starts; None once it has."""
        n, settings = self.declared.n, self.settings
        if self.declared.published or newest_version(self.store, n):
            return None
        decisions = counted(count_decisions(self.store, n), "decision")
        if settings.reward_wait == 0:
            fewest = min(settings.refit_rows, MIN_FIRST_ROWS)
            rows = TrainingRows(self.store, n, settings, self.menu)
            within = f"{_seconds(settings.refit_seconds)} (refit_seconds)"
            if rows.count(0.0, self.now(), fewest) == fewest:
                return f"the first version is fitted within {within}"
            return f"learning starts at most {within} after {counted(fewest, 'reward')}"
        oldest = self.select("select at from decision where bandit = :bandit order by at limit 1")
        if not oldest:
            wait = _seconds(settings.reward_wait)
            return f"no decisions yet; learning starts {wait} after the first one (reward_wait)"
        seconds = oldest[0][0] + settings.reward_wait - self.now()
        if seconds <= 0:
            return f"{decisions}; the first can be learned from now"
        left = _seconds(math.ceil(seconds))
        return f"{decisions} waiting; learning starts in {left} (reward_wait)"

    def notices(self) -> list[str]:
        """Sentences about what an operator should look at; empty if there is nothing."""
        rails, waiting = self.settings.guard_rails, self.waiting()
        decided = count_decisions(self.store, self.declared.n)
        found = [] if waiting is None else [waiting]
        found += rail_notices(self.settings, self.menu, self.declared.ramps, decided)
        if rails.holdout or rails.control_share:
            found += [f"{one.against}: {one.cautions[-1]}" for one in self.lift() if one.alarm]
        return found


def _seconds(count: float) -> str:
    return f"{count:.10g} second{'' if count == 1 else 's'}"


def median_delay(bins: Floats) -> float | None:
    """The delay that half of the rewards exceed, interpolated within its bin; None without any."""
    half = bins.sum() / 2
    if not half:
        return None
    reached = np.cumsum(bins)
    place = int((reached < half).sum())
    share = (half - reached[place] + bins[place]) / bins[place]
    # Bins double in length, but for the first, which begins at 0; the last one has no end.
    return float(share if place == 0 else 2.0 ** (place - 1 + share * (place < BINS - 1)))
