"""A log of decisions: contexts, actions, their propensities, and rewards."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import one_of, whole_number
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.summary import Summary
from submax.evaluation.frames import data_frame
from submax.evaluation.logs.clusters import random_clusters, renumbered
from submax.evaluation.logs.encoded_parts import EncodedParts
from submax.evaluation.logs.log_frame import log_columns
from submax.evaluation.logs.log_view import log_summary
from submax.evaluation.logs.propensity_model import estimate_slot_propensities
from submax.schema.menu import ChoiceIndices
from submax.schema.schema import Schema

By = Literal["time", "random"]
"""Which rows a split takes first: the earliest ones, or random ones."""


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
    rows of a cluster depend on each other. ``probability [N, P]`` are the columns
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
        id, time, status, cluster, probability. A role that is not given is filled by the column
        with its usual name; clusters and probabilities of other policies must be given.

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
            log_columns(self.schema, self.context, self.action, self.reward, self.propensity)
        )

    def __repr__(self) -> str:
        return str(self._summary())

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        return log_summary(
            self.schema, self.action, self.reward, self.propensity, self.estimated, self.notes
        )

    def __len__(self) -> int:
        return len(self.reward)

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
        """A hash of the contexts, actions and rewards of all rows, without propensities."""
        return self.fingerprint_of(len(self))

    def fingerprint_of(self, count: int) -> str:
        """Return the fingerprint of the first ``count`` rows.

        It recognizes a log that has grown: its first rows are those of the log before.
        """
        digest = hashlib.sha256()
        for column in (self.context, self.action, self.reward):
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
        slots = self.slot_propensity
        return replace(
            self,
            context=self.context[which],
            action=self.action[which],
            reward=self.reward[which],
            propensity=self.propensity[which],
            eligible_set=self.eligible_set[which],
            estimated=self.estimated[which],
            slot_propensity=None if slots is None else slots[which],
            raised=None if self.raised is None else self.raised[which],
            cluster=None if self.cluster is None else renumbered(self.cluster[which]),
            probability=None if self.probability is None else self.probability[which],
        )

    def split(self, share: float, by: By = "time", seed: int = 0) -> tuple["Log", "Log"]:
        """Return two logs: one with a ``share`` of the rows, earliest or random, and the rest."""
        first = self.chosen(share, by, seed)
        return self.rows(first), self.rows(~first)

    def chosen(self, share: float, by: By, seed: int) -> Booleans:
        """Return which rows a split puts into its first log, ``[N]``.

        Both logs of the split have at least one row.
        """
        one_of("split by", by, ["time", "random"])
        whole_number("seed", seed, at_least=0)
        if not 0 < share < 1:
            raise InputError(
                f"the share is {share!r}, and must be above 0 and below 1: give 0.5 to learn from "
                "half of the rows"
            )
        if len(self) < 2:
            raise InputError(
                f"a log of {len(self)} rows cannot be split, since both parts need a row: "
                "read a log of at least 2 rows"
            )
        count = min(max(round(share * len(self)), 1), len(self) - 1)
        first = np.zeros(len(self), dtype=bool)
        if by == "time":
            first[:count] = True
        elif self.cluster is None:
            first[np.random.default_rng(seed).permutation(len(self))[:count]] = True
        else:
            first = random_clusters(self.cluster, count, seed)
        return first

    def with_estimated_propensities(self, seed: int = 0) -> "Log":
        """Return the log with unknown propensities filled in, and notes that say how many.

        They are the product of the slots' propensities if these were logged, otherwise estimates
        of a model. Both treat slots as chosen independently. ``seed`` draws the rows to which the
        model is fitted if there are very many.
        """
        log = self._with_products_of_slots()
        gaps = np.isnan(log.propensity)
        if not gaps.any():
            return log
        estimates, floors = log._modelled_propensities(seed)
        raised = np.maximum(estimates, floors)
        factor = np.where(gaps, (raised / estimates).prod(axis=1), 1.0)
        notes = [f"{int(gaps.sum())} propensities are not in the log: a model estimated them"]
        low = int(np.count_nonzero(factor > 1))
        if low:
            notes.append(
                f"{low} estimated propensities were below the floor and were raised to it "
                f"(the lowest from {estimates.prod(axis=1)[gaps].min():.2g})"
            )
        slots = log.slot_propensity
        return replace(
            log,
            propensity=np.where(gaps, raised.prod(axis=1), log.propensity),
            slot_propensity=raised if slots is None and gaps.all() else slots,
            estimated=gaps,
            raised=factor if low else None,
            notes=(*log.notes, *notes),
        )

    def estimated_slot_propensities(self, seed: int) -> Floats:
        """Return a model's estimate of the propensity of each slot's choice, ``[N, S]``.

        Estimates below the floor of ``estimate_slot_propensities`` are raised to it.
        """
        return np.maximum(*self._modelled_propensities(seed))

    def _modelled_propensities(self, seed: int) -> tuple[Floats, Floats]:
        eligible = [self.eligible_choices(slot) for slot in range(len(self.schema.menu.slots))]
        return estimate_slot_propensities(
            self.schema, self.context, self.parts, self.action, eligible, self.eligible_set, seed
        )

    def _with_products_of_slots(self) -> "Log":
        if self.slot_propensity is None or not np.isnan(self.propensity).any():
            return self
        product = self.slot_propensity.prod(axis=1)
        filled = int(np.count_nonzero(np.isnan(self.propensity) & ~np.isnan(product)))
        note = (
            f"{filled} propensities of joint actions are the products of their slots' propensities"
        )
        propensity = np.where(np.isnan(self.propensity), product, self.propensity)
        return replace(self, propensity=propensity, notes=(*self.notes, note))
