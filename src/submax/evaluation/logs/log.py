"""A log of decisions: contexts, actions, their propensities, and rewards."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.problem import Problem
from submax.core.summary import Summary
from submax.evaluation.frames import data_frame
from submax.evaluation.logs.clusters import renumbered
from submax.evaluation.logs.counted import divided_by_split
from submax.evaluation.logs.encoded_parts import EncodedParts
from submax.evaluation.logs.log_frame import log_columns
from submax.evaluation.logs.log_view import log_summary
from submax.evaluation.logs.missing_propensities import (
    modelled_propensities,
    with_estimated_propensities,
)
from submax.evaluation.logs.outcomes import Reward, with_reward
from submax.evaluation.logs.sessions import whole_sessions
from submax.evaluation.logs.splitting import By as By
from submax.evaluation.logs.splitting import chosen_rows
from submax.schema.menu import ChoiceIndices
from submax.schema.schema import Schema

COLUMNS = (
    "context",
    "action",
    "reward",
    "propensity",
    "eligible_set",
    "estimated",
    "slot_propensity",
    "raised",
    "cluster",
    "count",
    "fold",
    "sampling_weight",
    "probability",
    "outcomes",
    "session",
    "covariates",
)
"""The fields of a log that have an entry for each row, or are None."""


@dataclass(frozen=True, eq=False)
class Log:
    """N decisions with their rewards, in the order of time; made by ``Log.read``.

    ``context [N, F]`` has one number for each field; for a category it is the index of the value.
    ``action [N, S]`` has the index of the choice in each slot. ``propensity [N]`` is NaN if it is
    not known; ``estimated [N]`` says which propensities were estimated by a model.
    ``eligible_set [N]`` is the index, in ``eligible_sets``, of the choices that were eligible in
    a row. ``slot_propensity [N, S]`` is the propensity of each slot's choice by itself, if it was
    logged. ``raised [N]`` is the factor by which an estimated propensity was raised to its floor;
    None if none was. ``cluster [N]`` is the number of the cluster (such as a user) of each row, if
    rows of a cluster depend on each other. ``count [N]`` is the number of equal decisions that a
    row stands for, ``fold [N]`` its fold in cross-fitting, and ``sampling_weight [N]`` how many
    rows it stands for if the log is a sample; all may be None. ``outcomes [N, K]`` has several
    rewards, called ``outcome_names``, if the log has them: ``reward`` is then the first.
    ``session [N]`` is the number of each row's session, and ``covariates [N, C]`` were measured
    before the decisions, if they are given. ``probability [N, P]`` are the columns
    ``probability_names`` with probabilities of other policies. ``notes`` are sentences about what
    was left out or changed when the log was read.
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
    ) -> Self:
        """Read a log from a file, a folder of files, a data frame, or a table of columns.

        Files are Parquet, CSV or JSON lines (one object in each line; ``{"context": {"age": 40}}``
        has the column ``context_age``); gzip may have compressed the last two. A folder, or a
        pattern such as ``logs/2026-*.parquet``, is read as one log, in the order of the paths.

        ``columns`` maps roles to names of columns: action, reward, propensity, context, eligible,
        id, time, status, cluster, count, successes, weight, probability, session, covariate. A role
        that is not given is filled by the column with its usual name; the last seven must be
        given. If rows stand for several decisions, ``count`` is their number; ``successes`` says
        how many of them had the reward 1, and takes the place of the reward. ``weight`` is
        1 / (probability with which a row was kept) if the log is a sample. Several rewards are a
        list of columns, or a table from names to columns: see ``compare_rewards``. Rows of a
        ``session`` follow each other, in the order of time, and are a cluster unless clusters are
        given. A ``covariate`` was measured before the decision, and is used to shorten intervals.

        ``actions``, ``context`` and ``rewards`` declare what is allowed, as in ``submax.open``;
        ``schema`` declares all three at once and is that of another log or of a policy. What is
        not declared is taken from the values that occur.

        ``action_features`` describe the actions: a table as in ``submax.open``, or a file or data
        frame with a row for each action (a column ``action``, or ``slot`` and ``choice``) and a
        column for each feature.

        Rows with missing or impossible values raise an error that names them; with
        ``skip_bad_rows`` they are left out, and counted in the notes.

        >>> table = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "propensity": [0.5, 0.5, 0.5]}
        >>> log = Log.read(table)
        >>> len(log), log.schema.menu.action([1])
        (3, 'B')
        """
        from submax.evaluation.reading.log_reader import LogDeclaration, read_log

        declared = LogDeclaration(schema, actions, context, rewards, action_features)
        return cls(**read_log(source, columns or {}, declared, skip_bad_rows))

    @classmethod
    def from_arrays(
        cls,
        action: ArrayLike,
        reward: ArrayLike,
        *,
        propensity: ArrayLike | None = None,
        context: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Make a log from arrays: ``action [N]`` or ``[N, S]``, ``context [N, F]``, others ``[N]``.

        The fields of the context are called x0, x1 and so on, the slots slot0, slot1 and so on.
        ``options`` are those of ``read``.
        """
        from submax.evaluation.reading.arrays_table import arrays_table

        return cls.read(arrays_table(action, reward, propensity, context), **options)

    @classmethod
    def from_obp(cls, feedback: Mapping[str, Any], **options: Any) -> Self:
        """Make a log from the dictionary that Open Bandit Pipeline calls bandit feedback.

        ``position`` becomes a category of the context if it has several values. ``options`` are
        those of ``read``.
        """
        from submax.evaluation.reading.arrays_table import obp_table

        table, actions = obp_table(feedback)
        return cls.read(table, **{"actions": actions, **options})

    def to_pandas(self) -> Any:
        """Return a data frame with columns that ``Log.read`` finds by their names."""
        return data_frame(
            log_columns(
                self.schema, self.context, self.action, self.reward, self.propensity, self.count
            )
        )

    def __repr__(self) -> str:
        return str(self._summary())

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        return log_summary(
            self.schema,
            self.action,
            self.reward,
            self.propensity,
            self.estimated,
            self.notes,
            self.count,
        )

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def decisions(self) -> int:
        """The number of decisions: that of the rows, unless rows stand for several."""
        return len(self) if self.count is None else round(float(self.count.sum()))

    @property
    def problem(self) -> Problem:
        """The problem that policies are initialized with: actions, context and rewards."""
        return self.schema.problem

    @property
    def parts(self) -> EncodedParts:
        """The rows in the encoding from which policies learn, in parts that are made on access."""
        with np.errstate(invalid="ignore"):
            log_prob = np.log(self.propensity)
        return EncodedParts(self.schema.context, self.context, self.action, self.reward, log_prob)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the contexts, actions, rewards and counts of all rows, without propensities."""
        return self.fingerprint_of(len(self))

    def fingerprint_of(self, count: int) -> str:
        """Return the fingerprint of the first ``count`` rows.

        It recognizes a log that has grown: its first rows are those of the log before.
        """
        digest = hashlib.sha256()
        counts = () if self.count is None else (self.count,)
        for column in (self.context, self.action, self.reward, *counts):
            digest.update(repr((column[:count].shape, column.dtype.str)).encode())
            digest.update(np.ascontiguousarray(column[:count]).data)
        return digest.hexdigest()

    def eligible_choices(self, slot: int) -> Booleans:
        """Return which choices of a slot are in each of the eligible sets, ``[sets, choices]``."""
        choices = len(self.schema.menu.slots[slot].choices)
        mask = np.zeros((len(self.eligible_sets), choices), dtype=bool)
        for number, eligible in enumerate(self.eligible_sets):
            mask[number, list(eligible[slot])] = True
        return mask

    def rows(self, which: Booleans | Integers) -> "Log":
        """Return a log of some of the rows, given by a mask or by their numbers."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        taken = {name: one[which] for name, one in columns.items() if one is not None}
        for name in ("cluster", "session"):
            if name in taken:
                taken[name] = renumbered(taken[name])
        return replace(self, **taken)

    def with_reward(self, reward: Reward) -> "Log":
        """Return the log with one of several rewards, or a weighted sum of them, as its reward.

        >>> table = {"action": ["A", "B"], "click": [1, 1], "buy": [0, 1]}
        >>> log = Log.read(table, columns={"reward": ["click", "buy"]})
        >>> log.with_reward({"click": 1, "buy": 20}).reward.tolist()
        [1.0, 21.0]
        """
        return with_reward(self, reward)

    def split(self, share: float, by: By = "time", seed: int = 0) -> tuple["Log", "Log"]:
        """Return two logs: one with a ``share`` of the rows, earliest or random, and the rest."""
        if self.count is not None:
            divided = divided_by_split(self, share, by, seed)
            return divided.log.rows(divided.part == 0), divided.log.rows(divided.part == 1)
        first = self.chosen(share, by, seed)
        return self.rows(first), self.rows(~first)

    def chosen(self, share: float, by: By, seed: int) -> Booleans:
        """Return which rows a split puts into its first log, ``[N]``.

        Both logs of the split have at least one row.
        """
        first = chosen_rows(len(self), self.cluster, share, by, seed)
        return first if self.session is None else whole_sessions(first, self.session)

    def with_estimated_propensities(self, seed: int = 0) -> "Log":
        """Return the log with unknown propensities filled in, and notes that say how many.

        They are the product of the slots' propensities if these were logged, otherwise estimates
        of a model. Both treat slots as chosen independently. ``seed`` draws the rows to which the
        model is fitted if there are very many.
        """
        return with_estimated_propensities(self, seed)

    def estimated_slot_propensities(self, seed: int) -> Floats:
        """Return a model's estimate of the propensity of each slot's choice, ``[N, S]``.

        Estimates below the floor of ``estimate_slot_propensities`` are raised to it.
        """
        return np.maximum(*modelled_propensities(self, seed))
