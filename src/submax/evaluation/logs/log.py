"""A log of decisions: what was shown, with which probability, and what came back."""

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
from submax.evaluation.logs.encoded_parts import EncodedParts
from submax.evaluation.logs.log_view import log_summary
from submax.schema.menu import Shown
from submax.schema.schema import Schema

By = Literal["time", "random"]


@dataclass(frozen=True, eq=False)
class Log:
    """N decisions with their rewards, in the order of time; made by ``Log.read``.

    ``context [N, F]`` has a number for each field, that of a category its place; ``action [N, S]``
    the number of each choice. ``propensity [N]`` is NaN where it is not known; ``estimated [N]``
    says which of them a model has guessed. ``shown [N]`` is the place in ``menus`` of the choices
    that were eligible. ``slot_propensity [N, S]`` is that of each choice by itself, if logged.
    ``notes`` are sentences about what was left out or changed when the log was read.
    """

    schema: Schema
    context: NDArray[np.float32]
    action: NDArray[Any]
    reward: Floats
    propensity: Floats
    shown: NDArray[np.int32]
    menus: tuple[Shown, ...]
    estimated: Booleans
    slot_propensity: Floats | None = None
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
        """A log from a Parquet or CSV file, a data frame, or a table of columns.

        ``columns`` maps roles to columns: action, reward, propensity, context, eligible, id, time,
        status; what has its usual name is found. ``actions``, ``context`` and ``rewards`` declare
        what is allowed, as in ``submax.open``; ``schema`` is all of them, that of another log or
        policy. What is not declared is what occurs. ``action_features`` describe the actions: a
        table as in ``submax.open``, or a file or data frame with a row for each action (a column
        ``action``, or ``slot`` and ``choice``) and a column for each feature.

        >>> table = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "propensity": [0.5, 0.5, 0.5]}
        >>> log = Log.read(table)
        >>> len(log), log.schema.menu.action([1])
        (3, 'B')
        """
        from submax.evaluation.reading.log_reader import Declared, read_log

        declared = Declared(schema, actions, context, rewards, action_features)
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
        """A log from arrays: ``action [N]`` or ``[N, S]``, ``context [N, F]``, the others ``[N]``.

        Fields of the context are called x0, x1, and so on, slots slot0, slot1; ``options`` are
        those of ``read``.
        """
        from submax.evaluation.reading.arrays_table import arrays_table

        return cls.read(arrays_table(action, reward, propensity, context), **options)

    @classmethod
    def from_obp(cls, feedback: Mapping[str, Any], **options: Any) -> Self:
        """A log from the dictionary that Open Bandit Pipeline calls bandit feedback.

        Its ``position``, where there are several, becomes a category of the context.
        """
        from submax.evaluation.reading.arrays_table import obp_table

        table, actions = obp_table(feedback)
        return cls.read(table, **{"actions": actions, **options})

    def __repr__(self) -> str:
        return str(log_summary(self))

    def _repr_html_(self) -> str:
        return log_summary(self).html()

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def problem(self) -> Problem:
        """What a policy is told."""
        return self.schema.problem

    @property
    def parts(self) -> EncodedParts:
        """The rows as a policy learns from them, encoded part by part when asked for."""
        with np.errstate(invalid="ignore"):
            log_prob = np.log(self.propensity)
        return EncodedParts(self.schema.context, self.context, self.action, self.reward, log_prob)

    @cached_property
    def fingerprint(self) -> str:
        """The hash of what happened in all rows, whatever is known of propensities."""
        return self.fingerprint_of(len(self))

    def fingerprint_of(self, count: int) -> str:
        """The same for the first rows: a log that has grown begins as it was."""
        digest = hashlib.sha256()
        for column in (self.context, self.action, self.reward):
            digest.update(repr((column[:count].shape, column.dtype.str)).encode())
            digest.update(np.ascontiguousarray(column[:count]).data)
        return digest.hexdigest()

    def eligible_choices(self, slot: int) -> Booleans:
        """Which choices of a slot each of the menus shows, ``[menus, choices]``."""
        found = np.zeros((len(self.menus), len(self.schema.menu.slots[slot].choices)), dtype=bool)
        for number, shown in enumerate(self.menus):
            found[number, list(shown[slot])] = True
        return found

    def rows(self, which: Booleans | Integers) -> "Log":
        """Some of the rows."""
        slots = self.slot_propensity
        return replace(
            self,
            context=self.context[which],
            action=self.action[which],
            reward=self.reward[which],
            propensity=self.propensity[which],
            shown=self.shown[which],
            estimated=self.estimated[which],
            slot_propensity=None if slots is None else slots[which],
        )

    def split(self, share: float, by: By = "time", seed: int = 0) -> tuple["Log", "Log"]:
        """Two logs: the first has this ``share`` of the rows, the earliest or random ones."""
        first = self.chosen(share, by, seed)
        return self.rows(first), self.rows(~first)

    def chosen(self, share: float, by: By, seed: int) -> Booleans:
        """Which rows a split puts first, ``[N]``; both sides have at least one."""
        one_of("split by", by, ["time", "random"])
        whole_number("seed", seed, at_least=0)
        if not 0 < share < 1:
            raise InputError(f"a share must be between 0 and 1, not {share!r}")
        if len(self) < 2:
            raise InputError(f"a log of {len(self)} rows cannot be split")
        count = min(max(round(share * len(self)), 1), len(self) - 1)
        first = np.zeros(len(self), dtype=bool)
        if by == "time":
            first[:count] = True
        else:
            first[np.random.default_rng(seed).permutation(len(self))[:count]] = True
        return first

    def with_estimated_propensities(self, seed: int = 0) -> "Log":
        """The same, with a model's guess where the propensity is not known; see the notes."""
        from submax.evaluation.logs.propensity_model import with_estimates

        return with_estimates(self, seed)
