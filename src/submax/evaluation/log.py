"""A log of decisions: contexts, actions, their propensities, and rewards."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import msgspec
import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import finite, one_of, whole_number
from submax.core.disk import TemporaryFolder, in_pieces, new_column, release, taken
from submax.core.errors import InputError
from submax.core.numerics import STEP, mixed, pieces
from submax.core.optional import require_module
from submax.core.problem import Problem
from submax.core.summary import Summary, counted, listed, number
from submax.evaluation.reading import all_binary, read_log
from submax.evaluation.sources import TextFormat
from submax.schema.actions import ChoiceIndices
from submax.schema.context import Category
from submax.schema.rewards import rewards_of
from submax.schema.rows import Columns
from submax.schema.schema import Schema
from submax.statistics.sums import mean


def data_frame(rows: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> Any:
    """Return a pandas data frame of rows, or of columns."""
    require_module("a data frame", "pandas")
    import pandas as pd  # type: ignore[import-untyped]  # pandas comes without types

    return pd.DataFrame(rows)


def field_columns(schema: Schema, context: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Return a column for each field of the context: numbers, and the names of categories."""
    columns: dict[str, NDArray[Any]] = {}
    fields = schema.context
    for name, field, values in zip(fields.names, fields.fields, context.T, strict=True):
        if isinstance(field, Category):
            columns[name] = np.array(field.values, dtype=object)[values.astype(np.int64)]
        else:
            columns[name] = values.astype(np.float64)
    return columns


By = Literal["time", "random"]
"""Which rows a split takes first: the earliest ones, or random ones."""
MOST_EXPANDED = 20_000_000
"""Most decisions to which a log is expanded to learn from it: their columns take a few GB."""
FOLD_SEED = 2
"""Added to the seed of folds, so they are independent of samples and splits."""
MOST_ROWS, MOST_NUMBERS = 1 << 18, 1 << 24
"""Most rows of an encoded part, and most numbers: 64 MB as float32. Every value of a category takes
a number in the encoding."""
MOST_NOTES = 3
"""Notes in the text of a log; all of them are in its ``notes``."""
Reward = str | Mapping[str, float]
"""One of the rewards of a log by name, or the weights of their sum, {'click': 1, 'buy': 20}."""


class DividedLog(NamedTuple):
    """A log whose decisions are divided into parts; ``part [n]`` is the part of each row.

    If rows that stand for several decisions were divided, ``number [n]`` is the index that each row
    had in the log before; otherwise it is None.
    """

    log: "Log"
    part: NDArray[np.int8]
    number: Integers | None = None


def divided(log: "Log", shares: Sequence[float], by: By, seed: int) -> DividedLog:
    """Return the log with each decision in one of several parts with these ``shares`` of them.

    Parts by time are consecutive; the others are random. A session is never divided, nor is a
    cluster if parts are random. Without sessions and clusters, decisions are divided, not rows: a
    row that stands for 1000 decisions can have 480 of them in the first part and 520 in the rest.
    """
    one_of("split by", by, ["time", "random"])
    whole_number("seed", seed, at_least=0)
    if not 0 < shares[0] < 1:
        raise InputError(
            f"the share is {shares[0]!r}: give a number between 0 and 1, such as 0.5 for "
            "half of the rows",
            parameter="share",
        )
    if log.decisions < 2:
        raise InputError(
            f"a log of {log.decisions} rows cannot be split, since both parts need a row: "
            "read a log of at least 2 rows"
        )
    rng, unit = np.random.default_rng(seed), log.session
    if by == "random" and log.cluster is not None:
        unit = log.cluster
    by_count = log.count is not None and unit is None
    total = log.decisions if by_count else len(log)
    ends = np.clip(np.round(np.cumsum(shares)[:-1] * total), 1, total - 1).astype(np.int64)
    edges = np.array([0, *ends, total])
    sizes = np.diff(edges)
    if by_count:
        counts = log.counts
        if by == "time":
            before = np.cumsum(counts) - counts
            return divided_counts(log, np.diff(np.clip(edges[:, None] - before, 0, counts), axis=0))
        left, parts = counts.astype(np.int64), list[Integers]()
        for size in sizes[:-1]:
            parts.append(rng.multivariate_hypergeometric(left, size, method="marginals"))
            left = left - parts[-1]
        return divided_counts(log, np.stack([*parts, left]).astype(np.float64))
    part = np.repeat(np.arange(len(shares), dtype=np.int8), sizes)
    if unit is None and by == "time":
        # No array of row numbers: for a log on disk it could take more memory than there is.
        return DividedLog(log, part)
    is_grouped = unit is not None
    unit = np.arange(len(log)) if unit is None else unit
    if by == "time":
        first, last = np.unique(unit, return_index=True)[1], -1
    else:
        # How many rows come before each unit if the units are in random order.
        rows = np.bincount(unit)
        order = rng.permutation(len(rows))
        first, last = np.empty(len(rows), np.int64), order[-1]
        first[order] = np.cumsum(rows[order]) - rows[order]
    of_unit = part[first]
    if len(of_unit) > 1:
        # The last part gets a unit, however large the others are.
        of_unit[last] = len(ends)
    part = of_unit[unit]
    if is_grouped and len(np.unique(part)) < len(shares):
        raise InputError(
            "all rows would be on one side of the split, because sessions are never divided, nor "
            "are clusters at random: change the share, split by time, or read a log with more "
            "sessions or clusters"
        )
    return DividedLog(log, part)


def order_notes(log: "Log", first: Booleans, by: By) -> Iterator[str]:
    """Yield a sentence if a split by time gave the two parts different actions.

    The rows of a table of totals are often in the order of the actions, not in order of time.
    """
    if log.count is None or by != "time" or not first.any():
        return
    learned, rest = (np.unique(log.action[part], axis=0) for part in (first, ~first))
    if not np.array_equal(learned, rest):
        yield (
            "policies learn from the first rows of this table of counts, which took other actions "
            "than the rows to evaluate on; a split by time is right only if the rows are in order "
            'of time: otherwise give --by random (by="random")'
        )


def uniform_of(number: Integers, seed: int) -> Floats:
    """Return a pseudo-random number between 0 and 1 that depends only on a row's number.

    >>> bool(uniform_of(np.arange(10), 0)[3] == uniform_of(np.array([3]), 0)[0])
    True
    """
    bits = mixed(number.astype(np.uint64) + np.uint64(seed * STEP % 2**64))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def divided_by_fold(log: "Log", folds: int, numbers: Integers) -> DividedLog:
    """Return the log with every decision in a random fold; a row becomes up to one row per fold.

    Otherwise all of the equal decisions of a row would be in the same fold, and the model that
    predicts them would never have seen any of them. The folds of a row depend on its number alone.
    """
    left, drawn = log.counts, np.empty((folds, len(log)))
    for fold in range(folds):
        chance = uniform_of(numbers, fold + FOLD_SEED)
        drawn[fold] = scipy.stats.binom.ppf(chance, left, 1 / (folds - fold))
        left = left - drawn[fold]
    divided = divided_counts(log, drawn)
    return divided._replace(log=replace(divided.log, fold=divided.part))


def expanded(log: "Log") -> "Log":
    """Return the log with a row for every decision."""
    if log.count is None:
        return log
    if log.decisions > MOST_EXPANDED:
        raise InputError(
            f"the log stands for {log.decisions} decisions, but a policy can learn from at most "
            f"{MOST_EXPANDED}: divide the counts by a number, or evaluate a learned policy"
        )
    rows = np.repeat(np.arange(len(log)), log.count.astype(np.int64))
    return replace(log.rows(rows), count=None)


def divided_counts(log: "Log", counts: Floats) -> DividedLog:
    """Return the log with the ``counts [parts, N]`` of each part; rows without any are left out."""
    number, part = np.nonzero(counts.T > 0)
    divided = replace(log.rows(number), count=counts[part, number])
    return DividedLog(divided, part.astype(np.int8), number)


def trajectory_weights(weight: Floats, session: Integers) -> Floats:
    """Return the products of weights within each session, ``[n, 3]``; rows are in order of time.

    With w_t the weight of the decision at step t of a session of T steps, these are Π_s<t w_s,
    Π_s≤t w_s, and Π_s≤T w_s.
    """
    order, sizes = np.argsort(session, kind="stable"), np.bincount(session)
    starts = np.cumsum(sizes) - sizes
    through, before = weight[order], np.ones(len(weight))
    for step in range(1, int(sizes.max(initial=0))):
        rows = starts[sizes > step] + step
        before[rows] = through[rows - 1]
        through[rows] *= before[rows]
    whole = np.repeat(through[starts + sizes - 1], sizes)
    found = np.empty((len(weight), 3))
    found[order] = np.stack([before, through, whole], axis=1)
    return found


class EncodedParts(Sequence[Columns]):
    """A sequence of parts of equal length (the last may be shorter), each encoded on access."""

    def __init__(self, log: "Log") -> None:
        width = max(log.schema.context.width, 1)
        step = max(1, min(MOST_ROWS, MOST_NUMBERS // width))
        self._log, self._rows = log, list(pieces(len(log), step))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        log, rows = self._log, self._rows[place]
        with np.errstate(invalid="ignore"):
            log_prob = np.log(log.propensity[rows])
        return Columns(
            log.schema.context.encode_rows(log.context[rows]),
            log.action[rows].astype(np.float64),
            log.reward[rows],
            log_prob,
        )


@dataclass(frozen=True, eq=False)
class Log:
    """N decisions with their rewards, in the order of time; made by ``Log.read``.

    ``context [N, F]`` has one number for each field; for a category it is the index of the value.
    ``action [N, S]`` has the index of the choice in each slot. ``propensity [N]`` is NaN if it is
    not known, and ``estimated [N]`` says which ones a model estimated. ``eligible_set [N]`` is the
    index, in ``eligible_sets``, of the choices that were eligible in a row. ``notes`` are sentences
    about what was left out or changed. The others are None if the log has none of them:

    - ``slot_propensity [N, S]``, the propensity of each slot's choice by itself;
    - ``raised [N]``, the factor by which an estimated propensity was raised to its floor;
    - ``cluster [N]`` and ``session [N]``, the number of the cluster and session of each row;
    - ``count [N]``, the equal decisions that a row stands for, and ``sampling_weight [N]``, the
      rows that it stands for if the log is a sample; ``fold [N]``, its fold in cross-fitting;
    - ``outcomes [N, K]``, several rewards, of which the first is the ``reward``;
    - ``covariates [N, C]``, measured before the decisions;
    - ``probability [N, P]``, columns with probabilities of other policies.

    The columns of a very long log are files of a ``folder``; only some rows are in memory.
    """

    schema: Schema
    context: NDArray[np.float32]
    action: NDArray[Any]
    reward: Floats
    propensity: Floats
    eligible_set: NDArray[np.int32]
    eligible_sets: tuple[ChoiceIndices, ...]
    estimated: Booleans
    slot_propensity: Floats | None = None
    raised: Floats | None = None
    cluster: Integers | None = None
    count: Floats | None = None
    fold: NDArray[np.int8] | None = None
    sampling_weight: Floats | None = None
    outcomes: Floats | None = None
    outcome_names: tuple[str, ...] = ()
    session: Integers | None = None
    covariates: Floats | None = None
    probability: Floats | None = None
    probability_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folder: TemporaryFolder | None = None

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        columns: Mapping[str, Any] | None = None,
        actions: object = None,
        context: object = None,
        rewards: object = None,
        action_features: object = None,
        schema: Schema | None = None,
        skip_bad_rows: bool = False,
        separator: str | None = None,
        decimal: str | None = None,
    ) -> Self:
        """Read a log from a file, a folder of files, a data frame, a query, or a table of columns.

        Files are Parquet, CSV or JSON lines (one object in each line; ``{"context": {"age": 40}}``
        has the column ``context_age``). CSV and JSON lines may be compressed by gzip. Commas,
        semicolons (then also decimal commas), tabs and bars in CSV files are recognized; for other
        files give the ``separator``, and ``decimal``, "." or ",". A folder, or a pattern such as
        ``logs/2026-*.parquet``, is read as one log, in the order of the paths.

        In a table, ``action [N, S]`` and ``context [N, F]`` can be arrays with two dimensions;
        their slots are called slot0, slot1, …, and their fields x0, x1, ….

        ``columns`` maps roles to names of columns; other roles are filled by the columns with the
        usual names. Several rewards are a list of columns, or a table from names to columns: see
        ``compare_rewards``. The roles are action, reward, propensity, context, eligible, id, time,
        status, and, only if they are named here, cluster, session, count, successes, weight,
        covariate and probability.

        ``actions``, ``context`` and ``rewards`` declare what is allowed, as in ``submax.open``; a
        ``schema``, of another log or of a policy, declares all three. What is not declared is taken
        from the values that occur. ``action_features`` describe the declared actions; if none are
        declared, the actions are those with features.

        Rows with missing or impossible values raise an error that names them, by the line of a CSV
        or JSON file. With ``skip_bad_rows`` they are left out, and counted in the notes.

        The columns of a log of more than two million rows are in files of a temporary folder, so
        memory does not grow with the rows.

        >>> table = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "propensity": [0.5, 0.5, 0.5]}
        >>> log = Log.read(table)
        >>> len(log), log.schema.menu.action([1])
        (3, 'B')
        """
        declared = {"schema": schema, "actions": actions, "context": context, "rewards": rewards}
        declared["action_features"] = action_features
        text = TextFormat(separator, decimal)
        return cls(**read_log(source, columns or {}, declared, skip_bad_rows, text))

    def __repr__(self) -> str:
        reward, known = self.reward, self.propensity[~np.isnan(self.propensity)]
        stands = "" if self.count is None else f" that stand for {self.decisions:,} decisions"
        context = listed(self.schema.context.names) or "no context"
        propensities = "no propensities"
        if len(known):
            propensities = f"propensities from {number(known.min())} to {number(known.max())}"
        sentences = [
            f"Log of {counted(len(self), 'row')}{stands}; context: {context}",
            f"{self.schema.rewards['kind']} rewards, mean {number(mean(reward, self.counts))}",
            propensities,
            *self.notes[:MOST_NOTES],
        ]
        return str(Summary(sentences))

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def counts(self) -> Floats:
        """The decisions that each row stands for, ``[N]``; without a ``count``, 1 for each row."""
        return np.broadcast_to(1.0, len(self)) if self.count is None else self.count

    @property
    def decisions(self) -> int:
        """The number of decisions: the number of rows, unless rows stand for several decisions."""
        return len(self) if self.count is None else round(float(self.count.sum()))

    @property
    def problem(self) -> Problem:
        """The problem that policies are initialized with: actions, context and rewards."""
        return self.schema.problem

    @property
    def parts(self) -> EncodedParts:
        """The rows in the encoding from which policies learn, in parts."""
        return EncodedParts(self)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the contexts, actions, rewards and counts of all rows, without propensities.

        It recognizes a log that has grown: the first rows still have the same fingerprint.
        """
        digest = hashlib.sha256()
        for column in (self.context, self.action, self.reward, self.count):
            if column is not None:
                digest.update(repr((column.shape, column.dtype.str)).encode())
                for part in in_pieces(column):
                    digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def eligible_choices(self, slot: int) -> Booleans:
        """Return which choices of a slot are in each of the eligible sets, ``[sets, choices]``."""
        indices = [eligible[slot] for eligible in self.eligible_sets]
        mask = np.zeros((len(indices), len(self.schema.menu.slots[slot].choices)), dtype=bool)
        sets = np.repeat(np.arange(len(indices)), list(map(len, indices)))
        mask[sets, np.concatenate(indices)] = True
        return mask

    def eligible_sizes(self) -> Floats:
        """Return the number of eligible choices of each slot in each of the sets, ``[sets, S]``."""
        sizes = [[len(indices) for indices in eligible] for eligible in self.eligible_sets]
        return np.array(sizes, dtype=np.float64)

    def batches(self) -> Iterator["Log"]:
        """Yield the rows in batches; only one batch of a log on disk is in memory at a time."""
        for rows in pieces(len(self)):
            yield self.rows(rows)
            self.release()

    def rows(self, which: Booleans | Integers | slice) -> "Log":
        """Return a log of some of the rows, given by a mask, by their numbers, or by a slice."""
        if self.folder is not None and not isinstance(which, slice) and which.dtype == bool:
            # Consecutive rows need no copy.
            first, count = int(which.argmax()), int(which.sum())
            if which[first : first + count].all():
                which = slice(first, first + count)
        found: dict[str, Any] = {
            name: taken(column, which, self.folder)
            for name in COLUMNS
            if (column := getattr(self, name)) is not None
        }
        for name in ("cluster", "session"):
            if name in found:
                # Without gaps, in the same order.
                found[name] = np.unique(found[name], return_inverse=True)[1].ravel()
        return replace(self, **found)

    def release(self) -> None:
        """Give back the memory of the columns of a log on disk."""
        release(getattr(self, name) for name in COLUMNS)

    def with_reward(self, reward: Reward) -> "Log":
        """Return the log with one of several rewards, or a weighted sum of them, as its reward.

        >>> table = {"action": ["A", "B"], "click": [1, 1], "buy": [0, 1]}
        >>> log = Log.read(table, columns={"reward": ["click", "buy"]})
        >>> log.with_reward({"click": 1, "buy": 20}).reward.tolist()
        [1.0, 21.0]
        """
        if self.outcomes is None:
            raise InputError(
                f"the reward {reward!r} does not exist, because this log has only one column of "
                "rewards: read several with columns={'reward': ['click', 'buy']}",
                parameter="reward",
            )
        weights = {reward: 1.0} if isinstance(reward, str) else dict(reward)
        if not weights:
            raise InputError(
                "the combination of rewards is empty: give weights, such as "
                f"{{'{self.outcome_names[0]}': 1}}",
                parameter="reward",
            )
        for name, weight in weights.items():
            one_of("reward", str(name), self.outcome_names)
            finite(f"the weight of the reward {name!r}", weight)
        places = [self.outcome_names.index(name) for name in weights]
        numbers = np.array(list(weights.values()), dtype=np.float64)
        values = new_column(self.folder, float, (len(self),))
        for rows in pieces(len(self)):
            values[rows] = self.outcomes[rows][:, places] @ numbers
            release([self.outcomes, values])
        kind: Any = "binary" if all_binary(values) else "continuous"
        if kind == "continuous" and all(all_binary(self.outcomes[:, one]) for one in places):
            low, high = (float(end(numbers, 0).sum()) for end in (np.minimum, np.maximum))
            kind = {"kind": kind, "low": low, "high": high}
        schema = msgspec.structs.replace(self.schema, rewards=rewards_of(kind))
        return replace(self, reward=values, schema=schema)

    def split(self, share: float, by: By = "time", seed: int = 0) -> tuple["Log", "Log"]:
        """Return two logs: a ``share`` of the rows, the earliest or random ones, and the rest."""
        parts = divided(self, [share, 1 - share], by, seed)
        return parts.log.rows(parts.part == 0), parts.log.rows(parts.part == 1)


COLUMNS = tuple(
    one.name
    for one in fields(Log)
    if one.name not in ("schema", "eligible_sets", "notes", "folder") and "names" not in one.name
)
"""The fields of a log that have an entry for each row, or are None."""
