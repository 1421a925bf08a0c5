"""What a store says about a bandit: counts, arms, series, segments, delays, lift, decisions.

Sums of decisions and rewards by hour are kept in the table ``summary``, which ``advance`` brings up
to date. A look adds what has happened since then, so it is right whether or not a process keeps the
table, and takes as long as what is new.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from threading import Lock
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.bandit.arms import (
    AVERAGED_CONTEXTS,
    ActionTally,
    ArmStatus,
    ChoiceTally,
    arm_statuses,
    rail_notices,
    wilson_interval,
)
from submax.bandit.assignment import ExperimentAssignment
from submax.bandit.decision import LiftReport
from submax.bandit.declaring import (
    DeclaredBandit,
    count_decisions,
    newest_version,
    read_bandit,
)
from submax.bandit.lift import GroupComparison, compare, lift_reports, new_comparisons
from submax.bandit.row_texts import read_action, read_choices, read_contexts, read_key
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
from submax.core.arrays import Floats, Integers
from submax.core.decoding import known_type
from submax.core.errors import NotFoundError
from submax.core.summary import counted
from submax.schema.actions import ActionSpec
from submax.schema.context import Category, Number
from submax.schema.names import Action
from submax.sequential.mixture_boundary import mixture_boundary

HOUR = 3600
"""Seconds of an interval of the table ``summary``."""
ALL_TIME = 2**53
"""An hour after all others."""
BINS = 26
"""Bins of delays: below 1 s, 1 to 2 s, 2 to 4 s, …, and more than 2²⁴ s, about half a year."""
DELAY_BIN = " + ".join(
    f"case when r.at - d.at > {2**place} then 1 else 0 end" for place in range(BINS - 1)
)
"""SQL for the bin of the delay of the reward ``r`` of the decision ``d``."""
HOLDOUT, PAUSED = "holdout", "paused"
"""Parts of the decisions that are not learned from; others are control, bandit and no group."""
SUMS = (
    "decisions", "known", "rewarded", "reward", "squares", "weight", "weight2", "weight_reward",
    "weight2_reward", "weight2_reward2",
)  # fmt: skip
"""Columns of ``summary``. ``known`` are decisions whose reward is known, also by default, and
``rewarded`` those that got one; then the sums of r and r², and with w = 1 / propensity those of w,
w², w r, w² r and w² r²."""
SEGMENT_DECISIONS = 20_000
"""Segments are those of so many decisions, the newest that have matured: reading contexts takes 5
to 10 µs each."""
LISTED_DECISIONS = 25
FEWEST_REWARDS = 30
"""Rewards of an arm, and of all others, below which nothing is said about delays."""
RARE = 0.001
"""The chance of a wrong sentence about any arm at one look, if arms are alike."""
AVERAGED_VALUES = 10_000
"""Decisions over which real-valued parts of actions are averaged, the newest."""
WATCHED_HOURS = 30 * 24
NEWEST_CONTEXTS, EARLIER_CONTEXTS, FEWEST_CONTEXTS = 100, 10_000, 1000
FEWEST_OUTSIDE = 6
"""Of 100 values, all above or all below everything that was seen before, that are a condition. If
the order of values means nothing, so many after 1000 others have a chance of at most
2 × (100 / 1100)⁶, about 1 in 900,000."""
MANY_ACTIONS = 256
PLANNED_DECISIONS = 1000
"""The number of decisions about which an interval is narrowest."""
FEWEST_DECISIONS = 100
"""Decisions on either side of an hour below which means are not compared."""
MANY_FAILURES = 3
"""Fits in a row that must fail before that is a condition."""
MOST_LIFT_POINTS = 400
"""Points of the chart of lift, of holdout and control together."""
MARGIN_SECONDS = 60.0
"""A row may become visible so long after the time that it has."""
Key = tuple[str, int, str, str, str]
"""A row of ``summary``: kind, interval or version, slot, choice and part."""


class LiftPoint(NamedTuple):
    """The lift over a group as it was known at a time, with its interval.

    ``since`` is the revision of the bandit by which groups were drawn then.
    """

    at: float
    against: str
    since: int
    estimate: float
    low: float | None
    high: float | None


class LiftHistory(msgspec.Struct):
    """The lift at the end of every interval of ``seconds``, which double when there are too many.

    ``interval`` is the number of the interval of the newest decision.
    """

    seconds: int = 60
    interval: int | None = None
    points: list[LiftPoint] = []

    def record(self, reports: Sequence[LiftReport], since: int) -> None:
        """Add the lift at the end of the interval of the newest decision."""
        if self.interval is None:
            return
        at = float((self.interval + 1) * self.seconds)
        self.points += [
            LiftPoint(at, one.against, since, one.estimate, one.low, one.high)
            for one in reports
            if one.estimate is not None
        ]
        if len(self.points) > MOST_LIFT_POINTS:
            self.seconds *= 2
            self.points = [one for one in self.points if one.at % self.seconds == 0]
            self.interval //= 2


class ProgressState(msgspec.Struct):
    """What cannot be summed: lift, which depends on the order, and the smallest propensity."""

    comparisons: dict[str, GroupComparison]
    smallest: float | None = None
    history: LiftHistory = msgspec.field(default_factory=LiftHistory)


class Fold:
    """Sums over what has happened after some time.

    ``sums`` are rows of ``summary``. ``decided`` is the time up to which decisions and rewards were
    read, ``matured`` the time up to which decisions were followed until they matured.
    """

    def __init__(
        self,
        store: Store,
        declared: DeclaredBandit,
        progress: "tuple[float, float, bytes] | None",
        step: int = HOUR,
        *,
        with_groups: bool = True,
    ) -> None:
        """``step`` is the length of an interval in seconds; that of the table is an hour.

        Without groups, the lift is left out.
        """
        self._store, self._declared, self._step = store, declared, step
        self._with_groups = with_groups
        self.settings, self.menu = declared.settings, declared.menu
        self.sums: dict[Key, Floats] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        if progress is None:
            wait = wait_of(self.settings)
            # Nothing was decided before the first decision, whatever the clock says.
            self.decided, self.matured = -1.0, -1.0 if wait == math.inf else wait - 1.0
            self.state = ProgressState(new_comparisons(self.settings))
        else:
            self.decided, self.matured, state = progress
            self.state = msgspec.msgpack.decode(state, type=known_type(ProgressState))

    def copy(self) -> "Fold":
        """A copy that can be advanced by itself."""
        state = msgspec.msgpack.encode(self.state)
        found = Fold(self._store, self._declared, (self.decided, self.matured, state), self._step)
        found.sums = dict(self.sums)
        return found

    def advance(self, until: float) -> None:
        """Add everything up to a time."""
        if until > self.decided:
            self._add_decided(until)
            self._add_rewards(until)
            self.decided = until
        if until > self.matured:
            rows = TrainingRows(self._store, self._declared.n, self.settings, self.menu)
            for matured in rows.matured(self.matured, until):
                self._add_matured(matured)
            self.matured = until

    def _rows(self, sql: str, until: float) -> Iterator[list[tuple[Any, ...]]]:
        return self._store.stream(sql, bandit=self._declared.n, after=self.decided, until=until)

    def _add_decided(self, until: float) -> None:
        sql = (
            f"select cast(floor(at / {self._step}.0) as bigint), action, "
            "case when paused = 1 then 'paused' else coalesce(assignment, '') end, "
            "version, count(*), min(propensity) from decision "
            "where bandit = :bandit and at > :after and at <= :until group by 1, 2, 3, 4"
        )
        for rows in self._rows(sql, until):
            bucket, action, part, version, count, least = zip(*rows, strict=True)
            drawn = [p for p, one in zip(least, part, strict=True) if one not in (HOLDOUT, PAUSED)]
            known = self.state.smallest
            self.state.smallest = min(drawn if known is None else [known, *drawn], default=None)
            counts = np.array(count, np.float64)
            self._add_choices(np.array(bucket), action, part, [counts])
            self._add("version", "", np.array(version), [""] * len(rows), part, [counts])

    def _add_rewards(self, until: float) -> None:
        sql = (
            f"select d.action, {DELAY_BIN}, r.late, r.source, count(*) from reward r "
            "join decision d on d.n = r.decision "
            "where r.bandit = :bandit and r.at > :after and r.at <= :until group by 1, 2, 3, 4"
        )
        for rows in self._rows(sql, until):
            action, place, late, source, count = zip(*rows, strict=True)
            counts = np.array(count, np.float64)
            columns = [counts, counts * late]
            nothing = [""] * len(rows)
            self._add("source", "", np.zeros(len(rows), np.int64), source, nothing, columns)
            if self.menu.plain:
                self._add("delay", "", np.array(place), action, nothing, columns)

    def _add_matured(self, matured: Matured) -> None:
        action, version, at = (matured.table[name] for name in ("action", "version", "at"))
        propensity = np.array(matured.table["propensity"])
        part = _parts(matured.table["assignment"], matured.table["paused"])
        learned = matured.status == LEARNED
        names = [STATUSES[number] for number in matured.status.tolist()]
        zeros, nothing = np.zeros(len(names), np.int64), [""] * len(names)
        self._add("status", "", zeros, names, nothing, [np.ones(len(names))])
        by_default = int((learned & ~matured.rewarded).sum())
        if by_default:
            ones = np.ones(by_default)
            self._add(
                "status",
                "",
                zeros[:by_default],
                ["by default"] * by_default,
                nothing[:by_default],
                [ones],
            )
        known = (matured.status != NEVER_ACTIVATED) & ~np.isnan(matured.reward)
        reward = np.where(known, matured.reward, 0.0)
        # The propensity of several slots is that of their joint action, not of one choice.
        weight = known / propensity if self.menu.plain else known.astype(np.float64)
        weighted = weight * reward
        columns = [
            zeros.astype(np.float64), known.astype(np.float64),
            (known & matured.rewarded).astype(np.float64), reward, reward**2, weight, weight**2,
            weighted, weight * weighted, weighted**2,
        ]  # fmt: skip
        self._add_choices(self._intervals(at), action, part, columns)
        self._add("version", "", np.array(version), nothing, part, columns)
        self._compare(matured, known)

    def _compare(self, matured: Matured, known: NDArray[np.bool_]) -> None:
        """Add decisions of groups to the comparisons, in the order in which they matured."""
        columns = ("assigned_since", "assignment", "holdout_share", "control_share", "unit")
        since, group, holdout, control, unit = (matured.table[name] for name in columns)
        which = [place for place in np.flatnonzero(known).tolist() if group[place] is not None]
        if not which or not self._with_groups:
            return
        groups = [
            ExperimentAssignment(since[one], group[one], holdout[one] or 0.0, control[one] or 0.0)
            for one in which
        ]
        units = [unit[one] for one in which]
        reward, history = matured.reward[which], self.state.history
        # The lift is recorded between intervals, so it does not depend on how rows are read.
        first = 0
        while first < len(which):
            interval = int(matured.matures[which[first]] // history.seconds)
            if interval != history.interval:
                history.record(self._reports(), self._declared.groups_since)
                interval = int(matured.matures[which[first]] // history.seconds)
                history.interval = interval
            end = (interval + 1) * history.seconds
            last = int(np.searchsorted(matured.matures[which], end))
            part = slice(first, last)
            compare(self.state.comparisons, groups[part], reward[part], units[part])
            first = last

    def _reports(self) -> list[LiftReport]:
        rails = self.settings.guard_rails
        if not rails.holdout and not rails.control_share:
            return []
        return lift_reports(self.settings, self.state.comparisons, self._declared.groups_since)

    def _add_choices(
        self, hour: Integers, action: Sequence[str], part: Sequence[str], columns: list[Floats]
    ) -> None:
        """Add to the sums of each choice; with slots also to those of all choices together."""
        if self.menu.plain:
            self._add("hour", "", hour, action, part, columns)
            return
        self._add("hour", "", hour, [""] * len(action), part, columns)
        for text in set(action) - self._names.keys():
            named = msgspec.json.decode(text)
            self._names[text] = tuple(named[slot.name] for slot in self.menu.slots)
        for place, slot in enumerate(self.menu.slots):
            choices = [self._names[text][place] for text in action]
            self._add("hour", slot.name, hour, choices, part, columns)
        if self.menu.ranges:
            # Every action with a real-valued part is another one.
            self._names.clear()

    def _intervals(self, at: Sequence[float]) -> Integers:
        return (np.array(at) // self._step).astype(np.int64)

    def _add(
        self,
        kind: str,
        slot: str,
        bucket: Integers,
        choice: Sequence[str],
        part: Sequence[str],
        columns: list[Floats],
    ) -> None:
        """Add columns to the rows of their interval, choice and part."""
        codes: dict[tuple[str, str], int] = {}
        code = [codes.setdefault(pair, len(codes)) for pair in zip(choice, part, strict=True)]
        names = list(codes)
        cells, place = np.unique(bucket * len(names) + np.array(code), return_inverse=True)
        table = np.zeros((len(cells), len(SUMS)))
        for number, column in enumerate(columns):
            table[:, number] = np.bincount(place, column, len(cells))
        for cell, row in zip(cells.tolist(), table, strict=True):
            number, which = divmod(cell, len(names))
            key = (kind, number, slot, *names[which])
            known = self.sums.get(key)
            self.sums[key] = row if known is None else known + row


def _parts(group: Sequence[str | None], paused: Sequence[Any]) -> list[str]:
    return [PAUSED if stopped else one or "" for one, stopped in zip(group, paused, strict=True)]


def delay_bounds(place: int) -> tuple[float, float]:
    """The shortest and the longest delay of a bin, in seconds."""
    low = 0.0 if place == 0 else 2.0 ** (place - 1)
    return low, math.inf if place == BINS - 1 else 2.0**place


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


UPSERT = (
    f"insert into summary (bandit, kind, bucket, slot, choice, part, {', '.join(SUMS)}) "
    f"values (:bandit, :kind, :bucket, :slot, :choice, :part, :{', :'.join(SUMS)}) "
    "on conflict (bandit, kind, bucket, slot, choice, part) do update set "
    + ", ".join(f"{one} = summary.{one} + excluded.{one}" for one in SUMS)
)


def read_progress(store: Store, bandit: int) -> tuple[float, float, bytes] | None:
    """How far ``summary`` is, and what cannot be summed; None if nothing was summed yet."""
    found = store.select(
        "select decided, matured, state from progress where bandit = :bandit", bandit=bandit
    )
    return (found[0][0], found[0][1], bytes(found[0][2])) if found else None


def advance(store: Store, declared: DeclaredBandit) -> None:
    """Bring the sums of a bandit up to date. One process at a time may do so for a bandit."""
    progress = read_progress(store, declared.n)
    fold = Fold(store, declared, progress)
    fold.advance(store.tick(declared.n))
    if not fold.sums and progress is not None:
        return
    row = {
        "bandit": declared.n,
        "decided": fold.decided,
        "matured": fold.matured,
        "state": msgspec.msgpack.encode(fold.state),
        "before": -1.0 if progress is None else progress[0],
    }
    # Required: if another process was first, nothing is added twice.
    first = Statement(
        "insert into progress (bandit, decided, matured, state) "
        "values (:bandit, :decided, :matured, :state) "
        "on conflict (bandit) do update set decided = excluded.decided, "
        "matured = excluded.matured, state = excluded.state where progress.decided = :before",
        row,
        required=True,
    )
    store.execute(
        [first, *(Statement(UPSERT, _summary_row(declared.n, *one)) for one in fold.sums.items())]
    )


def _summary_row(bandit: int, key: Key, sums: Floats) -> dict[str, Any]:
    kind, bucket, slot, choice, part = key
    named = dict(zip(SUMS, sums.tolist(), strict=True))
    return {
        "bandit": bandit, "kind": kind, "bucket": bucket, "slot": slot, "choice": choice,
        "part": part, **named,
    }  # fmt: skip


class Sums(NamedTuple):
    """A row of sums; see ``SUMS``."""

    decisions: float = 0.0
    known: float = 0.0
    rewarded: float = 0.0
    reward: float = 0.0
    squares: float = 0.0
    weight: float = 0.0
    weight2: float = 0.0
    weight_reward: float = 0.0
    weight2_reward: float = 0.0
    weight2_reward2: float = 0.0

    @property
    def mean(self) -> float | None:
        """The mean reward of decisions whose reward is known."""
        return self.reward / self.known if self.known else None

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean."""
        return self.tally.standard_error

    @property
    def effective(self) -> float | None:
        """How many decisions of equal propensity the weighted mean is worth."""
        return self.weight**2 / self.weight2 if self.weight2 else None

    @property
    def tally(self) -> ChoiceTally:
        """The same sums as those of a bandit in memory."""
        weights = (
            self.weight, self.weight2, self.weight_reward, self.weight2_reward,
            self.weight2_reward2,
        )  # fmt: skip
        return ChoiceTally(
            round(self.decisions), round(self.known), self.reward, self.squares, weights
        )


class Cell(NamedTuple):
    """The sums of one choice and part in an interval that begins ``at`` a time."""

    at: float
    choice: str
    part: str
    sums: Sums


class ArmDelay(msgspec.Struct, frozen=True, kw_only=True):
    """How long the rewards of an arm take.

    ``rewards`` is how many came, ``median`` the seconds that half of them exceed, and ``late`` the
    share that came too late to be learned from, with its 95 % interval. ``of_others`` is the median
    of all other arms. ``notable``: the arm is later than the others by more than chance explains,
    and late enough to make its numbers wrong.
    """

    choice: str
    rewards: int
    median: float
    late: float
    late_low: float
    late_high: float
    of_others: float | None
    notable: bool


class RewardSource(NamedTuple):
    """How many rewards a key has sent, and how many of them were late; ``key`` is its id."""

    key: str
    rewards: int
    late: int


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


class SegmentCell(NamedTuple):
    """The decisions of one choice in a segment of contexts."""

    choice: str
    sums: Sums


class Segment(NamedTuple):
    """Contexts with these values of one or two fields, and what was chosen for them."""

    values: tuple[str, ...]
    decisions: int
    cells: list[SegmentCell]

    @property
    def mean(self) -> float | None:
        """The mean reward in the segment."""
        known = sum(cell.sums.known for cell in self.cells)
        return sum(cell.sums.reward for cell in self.cells) / known if known else None


class Condition(msgspec.Struct, frozen=True):
    """Something that an operator should look at, as a ``sentence`` and as ``values``.

    ``kind`` is ``reward-rate``, ``missing-rewards``, ``context``, ``refits``, ``propensity``,
    ``silent-arm`` or ``late-arm``; ``subject`` is the arm or the field that it is about.
    """

    kind: str
    sentence: str
    values: dict[str, float]
    subject: str = ""


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
        """The settings."""
        return self.declared.settings

    @property
    def menu(self) -> ActionSpec:
        """The actions with their current status."""
        return self.declared.menu

    def _tail(self) -> Fold:
        """What has happened since ``summary`` was brought up to date."""
        progress = read_progress(self.store, self.declared.n)
        base, now = (self.declared.revision, progress), self.store.now(self.declared.n)
        with self._lock:
            if self._kept is None or self._base != base:
                self._kept, self._base = Fold(self.store, self.declared, progress), base
            self._kept.advance(now - MARGIN_SECONDS)
            tail = self._kept.copy()
        tail.advance(now)
        return tail

    def _sums(
        self,
        kind: str,
        by: Sequence[str],
        *,
        first: int = 0,
        last: int = ALL_TIME,
        step: int = 1,
        tail: Fold | None = None,
        slot: str | None = None,
    ) -> dict[tuple[Any, ...], Floats]:
        """Sums of a kind, grouped by columns of ``summary``; ``step`` joins intervals."""
        names = [f"bucket / {step}" if one == "bucket" and step > 1 else one for one in by]
        columns = ", ".join([*names, *(f"sum({one})" for one in SUMS)])
        values = {"bandit": self.declared.n, "kind": kind, "first": first, "last": last}
        which = "bandit = :bandit and kind = :kind and bucket >= :first and bucket <= :last"
        if slot is not None:
            which, values = f"{which} and slot = :slot", {**values, "slot": slot}
        group = f" group by {', '.join(names)}" if by else " having count(*) > 0"
        rows = self.store.select(f"select {columns} from summary where {which}{group}", **values)
        found = {row[: len(by)]: np.array(row[len(by) :], np.float64) for row in rows}
        places = [("kind", "bucket", "slot", "choice", "part").index(one) for one in by]
        for key, sums in (tail or self._tail()).sums.items():
            if key[0] == kind and first <= key[1] <= last and slot in (None, key[2]):
                joined = (kind, key[1] // step, *key[2:])
                name = tuple(joined[place] for place in places)
                found[name] = found[name] + sums if name in found else sums
        return found

    def counts(self) -> dict[str, int]:
        """Counts of events, and of what became of decisions."""
        return self._counts(self._tail())

    def _counts(self, tail: Fold) -> dict[str, int]:
        n = self.declared.n
        stored = self.store.select(
            "select decisions, rewards, late_rewards, orphans, dropped from counts "
            "where bandit = :bandit",
            bandit=n,
        )
        decisions, rewards, late, orphans, dropped = stored[0] if stored else (0,) * 5
        ((waiting, expired),) = self.store.select(
            "select count(*), coalesce(sum(case when until <= :now then 1 else 0 end), 0) "
            "from early_reward where bandit = :bandit",
            bandit=n,
            now=self.store.now(n),
        )
        by_status = self._sums("status", ["choice"], tail=tail)
        status = {name: round(sums[0]) for (name,), sums in by_status.items()}
        found = {
            "decisions": decisions,
            "rewards": rewards - late + waiting,
            "late rewards": late,
            "orphans": orphans + expired,
            "dropped from quarantine": dropped,
            "matured": sum(count for name, count in status.items() if name != "by default"),
            **status,
        }
        return {name: int(count) for name, count in found.items()}

    def quarantined(self) -> int:
        """The number of rewards that wait for their decisions."""
        return len(self.early_rewards(2**31))

    def early_rewards(self, limit: int = 100) -> list[EarlyReward]:
        """Rewards that wait for their decisions, the newest first."""
        rows = self.store.select(
            "select id, key, value, at, until, source from early_reward "
            "where bandit = :bandit and until > :now order by until desc, n desc limit :limit",
            bandit=self.declared.n,
            now=self.store.now(self.declared.n),
            limit=limit,
        )
        return [EarlyReward(one, read_key(key), *rest) for one, key, *rest in rows]

    def is_quarantined(self, identifier: str) -> bool:
        """Whether a reward came for an id that no decision has."""
        return bool(
            self.store.select(
                "select 1 from early_reward where bandit = :bandit and id = :id limit 1",
                bandit=self.declared.n,
                id=identifier,
            )
        )

    def tally(self) -> ActionTally:
        """Decisions and rewards of every choice since the beginning."""
        return self._tally(self._tail())

    def _tally(self, tail: Fold) -> ActionTally:
        tally = ActionTally.empty(len(self.menu.slots), len(self.menu.ranges))
        found = self._sums("hour", ["slot", "choice", "part"], tail=tail)
        for place, slot in enumerate(self.menu.slots):
            for index, choice in enumerate(slot.choices):
                of_choice = [
                    (part, sums)
                    for (name, one, part), sums in found.items()
                    if (name, one) == (slot.name, choice.name)
                ]
                if not of_choice:
                    continue
                total = sum(sums for _, sums in of_choice)
                learned = sum(
                    (sums for part, sums in of_choice if part not in (HOLDOUT, PAUSED)),
                    np.zeros(len(SUMS)),
                )
                tallied = Sums(float(total[0]), *learned[1:].tolist()).tally  # type: ignore[index]  # an array
                for name in ("decisions", "rows", "reward", "squares", "weights"):
                    setattr(tally.choice(place, index), name, getattr(tallied, name))
        for place, interval in enumerate(self.menu.ranges):
            rows = self.newest_decisions(limit=AVERAGED_VALUES)
            values = [row.action[interval.name] for row in rows if isinstance(row.action, dict)]
            for value in values:
                tally.values[place].add(float(value))
        return tally

    def arms(self, probabilities: Floats | None = None) -> list[ArmStatus]:
        """The decisions, share and reward rate of each choice.

        ``probabilities`` are those of the active joint actions at the next decision, if known.
        """
        return arm_statuses(self.settings, self.menu, self.tally(), probabilities)

    def totals(self) -> dict[str, Sums]:
        """The sums of all decisions by part: ``holdout``, ``control``, ``bandit``, ``paused``."""
        found = self._sums("hour", ["part"], slot="")
        return {part: Sums(*sums.tolist()) for (part,), sums in found.items()}

    def series(
        self,
        since: float | None = None,
        until: float | None = None,
        *,
        step: float = HOUR,
        slot: str | None = None,
    ) -> list[Cell]:
        """Sums by time, choice and part, oldest first, in steps of whole hours.

        With ``slot`` they are those of its choices; else all choices are taken together.
        """
        hours = max(1, round(step / HOUR))
        first = 0 if since is None else math.floor(since / HOUR)
        last = ALL_TIME if until is None else math.floor(until / HOUR)
        by = ["bucket", "choice", "part"] if slot is not None else ["bucket", "part"]
        found = self._sums("hour", by, first=first, last=last, step=hours, slot=slot or "")
        return [
            Cell(
                key[0] * hours * HOUR,
                key[1] if slot is not None else "",
                key[-1],
                Sums(*sums.tolist()),
            )
            for key, sums in sorted(found.items())
        ]

    def recent(
        self, decisions: int = SEGMENT_DECISIONS, *, step: int = 60, slot: str = ""
    ) -> tuple[float, list[Cell]]:
        """The time of the newest of so many decisions, and sums of what has happened since.

        Decisions count when they were made, and rewards when the decision matured; both are in the
        interval in which the decision was made. Intervals have ``step`` seconds. Without a
        ``slot``, choices of several slots are taken together.
        """
        n = self.declared.n
        found = self.store.select(
            "select at from decision where bandit = :bandit order by at desc limit 1 offset :count",
            bandit=n,
            count=decisions,
        )
        since = float(found[0][0]) if found else -1.0
        state = msgspec.msgpack.encode(ProgressState(new_comparisons(self.settings)))
        fold = Fold(self.store, self.declared, (since, since, state), step, with_groups=False)
        fold.advance(self.store.now(n))
        return since, [
            Cell(float(interval * step), choice, part, Sums(*sums.tolist()))
            for (kind, interval, name, choice, part), sums in sorted(fold.sums.items())
            if kind == "hour" and name == slot
        ]

    def by_version(self) -> dict[int, Sums]:
        """The sums of the decisions of each version, without those that are held out."""
        found = self._sums("version", ["bucket", "part"])
        total: dict[int, Floats] = {}
        for (version, part), sums in found.items():
            if part not in (HOLDOUT, PAUSED):
                total[version] = total.get(version, np.zeros(len(SUMS))) + sums
        return {version: Sums(*sums.tolist()) for version, sums in sorted(total.items())}

    def sources(self) -> list[RewardSource]:
        """Which keys have sent rewards, those with most first."""
        found = self._sums("source", ["choice"])
        rows = [RewardSource(key, round(one[0]), round(one[1])) for (key,), one in found.items()]
        return sorted(rows, key=lambda row: -row.rewards)

    def smallest_propensity(self) -> float | None:
        """The smallest probability with which an action was drawn; None before the first."""
        return self._tail().state.smallest

    def lift(self) -> list[LiftReport]:
        """How much more a decision of the bandit earns than one of the holdout and the control."""
        comparisons = self._tail().state.comparisons
        return lift_reports(self.settings, comparisons, self.declared.groups_since)

    def lift_history(self) -> list[LiftPoint]:
        """The lift as it was known over time since the groups last changed, oldest first."""
        points = self._tail().state.history.points
        return [one for one in points if one.since == self.declared.groups_since]

    def delay_histogram(self) -> list[tuple[float, float, int]]:
        """How many rewards took how long: the shortest and longest delay of a bin, and a count."""
        found = self._sums("delay", ["bucket"])
        return [(*delay_bounds(place), round(one[0])) for (place,), one in sorted(found.items())]

    def delays(self) -> list[ArmDelay]:
        """How long the rewards of each arm take, the slowest first; of plain arms only."""
        tables: dict[str, NDArray[np.float64]] = {}
        for (place, choice), sums in self._sums("delay", ["bucket", "choice"]).items():
            tables.setdefault(choice, np.zeros((BINS, 2)))[place] += sums[:2]
        total = sum(tables.values(), np.zeros((BINS, 2)))
        active = (
            {one.name for one in self.menu.slots[0].choices if one.status == "active"}
            if self.menu.plain
            else set()
        )
        found = []
        for choice, table in tables.items():
            rewards, late = table.sum(axis=0).tolist()
            low, high = wilson_interval(late / rewards, rewards)
            found.append(
                ArmDelay(
                    choice=choice,
                    rewards=round(rewards),
                    median=median_delay(table[:, 0]) or 0.0,
                    late=late / rewards,
                    late_low=low,
                    late_high=high,
                    of_others=median_delay(total[:, 0] - table[:, 0]),
                    notable=choice in active and self._is_late(table, total - table, len(tables)),
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
        self, unit: str | None = None, *, limit: int = LISTED_DECISIONS, before: float | None = None
    ) -> list[ListedDecision]:
        """The newest decisions, or those of one unit, newest first."""
        values: dict[str, Any] = {"bandit": self.declared.n, "limit": limit}
        which = "bandit = :bandit"
        if unit is not None:
            which, values = f"{which} and unit = :unit", {**values, "unit": unit}
        if before is not None:
            which, values = f"{which} and at < :before", {**values, "before": before}
        order = "n" if unit is not None else "at desc, n"
        rows = self.store.select(
            "select id, at, action, propensity, version, unit, assignment from decision "
            f"where {which} order by {order} desc limit :limit",
            **values,
        )
        return [
            ListedDecision(
                one, at, read_action(self.menu, action), propensity, version, who, group == HOLDOUT
            )
            for one, at, action, propensity, version, who, group in rows
        ]

    def row(self, identifier: str) -> DecisionRow | None:
        """The stored decision with this id."""
        rows = self.store.select(
            f"select {DECISION_COLUMNS} from decision where bandit = :bandit and id = :id",
            bandit=self.declared.n,
            id=identifier,
        )
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
            clock=self.store.now(self.declared.n),
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
            [
                [slot.choices[index].name for index in indices]
                for slot, indices in zip(self.menu.slots, eligible, strict=True)
            ],
            probabilities,
            status,
            [
                FoundReward(
                    read_key(key),
                    value,
                    at,
                    at - row.at,
                    bool(late),
                    msgspec.json.decode(parts) if parts else None,
                    source,
                )
                for key, value, at, late, parts, source in rewards
            ],
        )

    def recent_contexts(self, count: int = AVERAGED_CONTEXTS) -> list[str]:
        """The newest contexts as JSON, over which probabilities are averaged."""
        rows = self.store.select(
            "select context from decision where bandit = :bandit and context is not null "
            "order by at desc, n desc limit :count",
            bandit=self.declared.n,
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
        """What was chosen for which contexts, and with what result, by one field or two crossed.

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
        contexts: list[Any] = []
        action: list[str] = []
        columns: list[Floats] = []
        for matured in self.newest_matured(decisions):
            parts = _parts(matured.table["assignment"], matured.table["paused"])
            kept = [place for place, part in enumerate(parts) if part not in (HOLDOUT, PAUSED)]
            known = (matured.status != NEVER_ACTIVATED) & ~np.isnan(matured.reward)
            reward = np.where(known, matured.reward, 0.0)
            sums = [np.ones(len(known)), known, known & matured.rewarded, reward, reward**2]
            columns.append(np.stack(sums)[:, kept])
            context_texts, actions = matured.table["context"], matured.table["action"]
            contexts += read_contexts([context_texts[place] for place in kept])
            action += [actions[place] for place in kept]
        if not contexts:
            return []
        labels = [self._labels(name, contexts) for name in fields]
        if not self.menu.plain:
            action = [str(msgspec.json.decode(one).get(slot)) for one in action]
        return _segments(list(zip(*labels, strict=True)), action, np.concatenate(columns, axis=1))

    def newest_matured(self, decisions: int) -> Iterator[Matured]:
        """The newest decisions that have matured, oldest first."""
        rows = TrainingRows(self.store, self.declared.n, self.settings, self.menu)
        now, wait = self.store.now(self.declared.n), wait_of(self.settings)
        age = wait if self.settings.reward_wait > 0 else 0.0
        found = self.store.select(
            "select at from decision where bandit = :bandit and at <= :until "
            "order by at desc limit 1 offset :count",
            bandit=self.declared.n,
            until=now - age,
            count=decisions,
        )
        return rows.matured(found[0][0] + age if found else age - 1.0, now)

    def _labels(self, name: str, contexts: list[list[Any]]) -> list[str]:
        place = self.settings.context.names.index(name)
        field = self.settings.context.fields[place]
        values = [row[place] if place < len(row) else None for row in contexts]
        if isinstance(field, Category):
            return [str(value) for value in values]
        numbers = np.array([math.nan if one is None else one for one in values], np.float64)
        edges = np.unique(np.nanquantile(numbers, [0.2, 0.4, 0.6, 0.8])).tolist()
        between = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(edges)]
        names = [f"below {edges[0]:.3g}", *between, f"{edges[-1]:.3g} or more"]
        places = np.searchsorted(edges, numbers, side="right").tolist()
        return [names[place] for place in places]

    def waiting(self) -> str | None:
        """How many decisions wait for rewards and when learning starts; None once it has."""
        if self.declared.published or newest_version(self.store, self.declared.n):
            return None
        n, settings = self.declared.n, self.settings
        decisions = count_decisions(self.store, n)
        oldest = self.store.select(
            "select at from decision where bandit = :bandit order by at limit 1", bandit=n
        )
        if settings.reward_wait == 0:
            return f"{counted(decisions, 'decision')} so far; learning starts with the first reward"
        wait = f"{settings.reward_wait:g} seconds after a decision (reward_wait)"
        if not oldest:
            return f"no decision yet; learning starts {wait}"
        seconds = oldest[0][0] + settings.reward_wait - self.store.now(n)
        if seconds <= 0:
            return f"{counted(decisions, 'decision')}, of which the first can be learned from now"
        return (
            f"{counted(decisions, 'decision')} wait for rewards; learning starts in "
            f"{seconds:.0f} seconds, {wait}: set a shorter reward_wait to learn sooner"
        )

    def notices(self) -> list[str]:
        """Sentences about what an operator should look at; empty if there is nothing."""
        tail, rails = self._tail(), self.settings.guard_rails
        decided = count_decisions(self.store, self.declared.n)
        tally = self._tally(tail)
        found = rail_notices(self.settings, self.menu, self.declared.ramps, decided, tally)
        if rails.holdout or rails.control_share:
            reports = lift_reports(
                self.settings, tail.state.comparisons, self.declared.groups_since
            )
            found += [f"{one.against}: {one.cautions[-1]}" for one in reports if one.alarm]
        waiting = self.waiting()
        return found if waiting is None else [waiting, *found]

    # Conditions that deserve an alarm

    def conditions(self, failed_refits: int = 0, reason: str = "") -> list[Condition]:
        """What is wrong now; ``failed_refits`` is how many fits in a row have failed."""
        late = [_late_arm(one) for one in self.delays() if one.notable]
        # All rewards of an arm may be late: then the arm is late, and not broken.
        named = {one.subject for one in late}
        found = [
            *self._drops(),
            *self._contexts_outside(),
            *self._small_propensities(),
            *(one for one in self._silent_arms() if one.subject not in named),
            *late,
            *_failed(failed_refits, reason),
        ]
        # Numbers of NumPy cannot be written as JSON.
        return [
            msgspec.structs.replace(
                one, values={name: float(value) for name, value in one.values.items()}
            )
            for one in found
        ]

    def _drops(self) -> Iterator[Condition]:
        """Whether the reward of a decision, or the share with a reward, has dropped.

        An interval begins at every hour, and holds the mean since then at all times together but
        for its share of ``false_alarms``; the interval before an hour must not be above the one
        after it. It holds for large samples.
        """
        last = math.floor(self.store.now(self.declared.n) / HOUR)
        cells = self._sums("hour", ["bucket", "part"], first=last - WATCHED_HOURS, slot="")
        hours: dict[int, Floats] = {}
        for (hour, part), sums in cells.items():
            if part not in (HOLDOUT, PAUSED):
                hours[hour] = hours.get(hour, np.zeros(len(SUMS))) + sums
        table = np.array([sums for _, sums in sorted(hours.items())]).reshape(-1, len(SUMS))
        known, rewarded = table[:, 1], table[:, 2]
        for kind, what, total, squares in (
            ("reward-rate", "the mean reward of a decision", table[:, 3], table[:, 4]),
            ("missing-rewards", "the share of decisions with a reward", rewarded, rewarded),
        ):
            drop = _dropped(known, total, squares, self.settings.alarms.false_alarms)
            if drop is not None:
                before, now, decisions = drop
                yield Condition(
                    kind,
                    f"{what} has dropped from above {before:.4g} to below {now:.4g} (last "
                    f"{decisions:,} decisions)",
                    {"before": before, "now": now, "decisions": float(decisions)},
                )

    def _contexts_outside(self) -> Iterator[Condition]:
        """Which numbers of the newest contexts are far outside of what was seen before."""
        context = self.settings.context
        numbers = [
            (place, name)
            for place, name in enumerate(context.names)
            if isinstance(context.fields[place], Number)
        ]
        if not numbers:
            return
        texts = self.recent_contexts(NEWEST_CONTEXTS + EARLIER_CONTEXTS)
        if len(texts) < NEWEST_CONTEXTS + FEWEST_CONTEXTS:
            return
        rows = read_contexts(texts)
        for place, name in numbers:
            values = np.array([row[place] if place < len(row) else math.nan for row in rows])
            newest, before = values[:NEWEST_CONTEXTS], values[NEWEST_CONTEXTS:]
            low, high = float(np.nanmin(before)), float(np.nanmax(before))
            # A value that grows slowly, such as a date, is not far outside.
            span = high - low
            above, below = newest > high + span, newest < low - span
            count = int(max(above.sum(), below.sum()))
            if count >= FEWEST_OUTSIDE:
                far = float(
                    newest[above].max() if above.sum() >= below.sum() else newest[below].min()
                )
                yield Condition(
                    "context",
                    f"{count} of the newest {NEWEST_CONTEXTS} values of the context field "
                    f"{name!r} are far outside the range seen before, {low:.4g} to {high:.4g}: "
                    f"up to {far:.4g}",
                    {"low": low, "high": high, "value": far},
                    name,
                )

    def _small_propensities(self) -> Iterator[Condition]:
        limit, least = self.settings.alarms.smallest_propensity, self.smallest_propensity()
        joint = math.prod(map(len, self.menu.active))
        # Of many joint actions, or of numbers, every single one is improbable.
        if least is not None and least < limit and not self.menu.ranges and joint <= MANY_ACTIONS:
            yield Condition(
                "propensity",
                f"an action was drawn with the probability {least:.3g}, which is below the limit "
                f"{limit:g}: estimates from such decisions vary a lot, so raise the minimum",
                {"propensity": least, "limit": limit},
            )

    def _silent_arms(self) -> Iterator[Condition]:
        """Active arms without a success for so long that this is hardly chance.

        If an arm earns with the chance p, n decisions in a row without a success have the chance
        (1 − p)ⁿ. Here p is the lowest success rate of all arms that earn something, so an arm is
        not called broken because it is worse than others.
        """
        if not self.menu.plain or self.settings.rewards["kind"] != "binary":
            return
        cells = self._sums("hour", ["choice", "bucket", "part"], slot="")
        by_arm: dict[str, list[tuple[int, float, float]]] = {}
        for (choice, hour, part), sums in sorted(cells.items()):
            if part not in (HOLDOUT, PAUSED):
                by_arm.setdefault(choice, []).append((hour, float(sums[1]), float(sums[3])))
        totals = {arm: np.sum(rows, axis=0)[1:] for arm, rows in by_arm.items()}
        rates = {
            arm: float(reward / known) for arm, (known, reward) in totals.items() if reward > 0
        }
        choices = self.menu.slots[0].choices
        for choice in choices:
            name, rows = choice.name, by_arm.get(choice.name, [])
            if choice.status != "active" or not rows or not rates.keys() - {name}:
                continue
            last = max((hour for hour, _, reward in rows if reward > 0), default=None)
            silent = sum(known for hour, known, _ in rows if last is None or hour > last)
            lowest = min(rates.values())
            if (1 - lowest) ** silent >= RARE / len(choices):
                continue
            lacks = (
                "never had a reward"
                if last is None
                else f"had no reward for {rows[-1][0] - last:,} hours"
            )
            yield Condition(
                "silent-arm",
                f"{name!r} has {lacks}, in {silent:,.0f} decisions, while arms that earn "
                f"something are rewarded at least {100 * lowest:.2g} % of the time: check "
                "that it works",
                {"decisions": silent, "expected": lowest},
                name,
            )


def _dropped(
    known: Floats, total: Floats, squares: Floats, error: float
) -> tuple[float, float, int] | None:
    """Whether a mean has dropped at an hour: its lower end before, its upper end since."""
    if len(known) < 2:
        return None
    error /= 2 * WATCHED_HOURS
    before = np.cumsum(np.stack([known, total, squares]), axis=1)
    after = before[:, -1:] - before
    best = None
    # The newest hours one by one, then ever longer times.
    place = len(known) - 2
    step = 1
    while place >= 0:
        low, high = _ends(before[:, place], error)[0], _ends(after[:, place], error)[1]
        if low > high and (best is None or low - high > best[0] - best[1]):
            best = low, high, round(float(after[0, place]))
        place, step = place - step, step + step // 4 + 1
    return best


def _ends(sums: Floats, error: float) -> tuple[float, float]:
    """An interval for the mean that holds at all times, for large samples."""
    count, total, squares = sums.tolist()
    if count < FEWEST_DECISIONS:
        return -math.inf, math.inf
    mean = total / count
    deviation = math.sqrt(max(squares / count - mean**2, 1e-12))
    half = deviation * mixture_boundary(count, error, 0.0, PLANNED_DECISIONS) / count
    return mean - half, mean + half


def _late_arm(delay: ArmDelay) -> Condition:
    others = "" if delay.of_others is None else f", other arms {delay.of_others:.3g} s"
    return Condition(
        "late-arm",
        f"{delay.choice!r} is rewarded late: median {delay.median:.3g} s{others}; "
        f"{100 * delay.late:.2g} % of its rewards are too late to be learned from",
        {"median": delay.median, "late": delay.late},
        delay.choice,
    )


def _failed(failures: int, reason: str) -> Iterator[Condition]:
    if failures >= MANY_FAILURES:
        yield Condition(
            "refits",
            f"{failures} fits in a row have failed, so an older version decides: {reason}",
            {"failures": float(failures)},
        )


def _segments(
    values: list[tuple[str, ...]], action: Sequence[str], columns: Floats
) -> list[Segment]:
    """Sums by values and choice, the most frequent segments first."""
    codes: dict[tuple[tuple[str, ...], str], int] = {}
    code = np.array(
        [codes.setdefault(pair, len(codes)) for pair in zip(values, action, strict=True)]
    )
    table = np.array([np.bincount(code, column, len(codes)) for column in columns])
    found: dict[tuple[str, ...], list[SegmentCell]] = {}
    for (value, choice), sums in zip(codes, table.T.tolist(), strict=True):
        found.setdefault(value, []).append(SegmentCell(choice, Sums(*sums)))
    segments = [
        Segment(
            value,
            round(sum(cell.sums.decisions for cell in cells)),
            sorted(cells, key=lambda cell: -cell.sums.decisions),
        )
        for value, cells in found.items()
    ]
    return sorted(segments, key=lambda one: -one.decisions)
