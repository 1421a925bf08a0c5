"""What a log says about a policy that did not write it."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.core.spaces.space import Space
from submax.evaluation.evidence import Evidence
from submax.evaluation.logs.log import Log
from submax.evaluation.logs.propensity_model import slot_estimates
from submax.evaluation.models.real_parts import powers_of
from submax.evaluation.models.reward_model import RewardModel, fitted_models, fold_numbers
from submax.schema.columns import Columns
from submax.schema.learned import Learned
from submax.schema.model import renumbered

LISTED = 4096
"""Up to so many joint actions a policy's probabilities are written out."""
AT_ONCE = 1 << 22
"""About so many probabilities at a time."""
DRAWS = 32
"""Actions drawn in each row where they are not written out."""
UNIFORM = 1e-6


class Seen(NamedTuple):
    """Evidence, and the ``unsupported`` probability of choices that the log never has, ``[n]``."""

    evidence: Evidence
    unsupported: Floats


class Witness:
    """All that is the same for every policy: models of the rewards, propensities of the slots.

    Every row is predicted by a model that was fitted without it.
    """

    def __init__(self, log: Log, seed: int = 0) -> None:
        self.log = log
        # A log may have choices that are no longer active; a policy gives them no probability.
        menu = log.schema.menu.revived
        self._space: Space = menu.space(menu.active)
        self._models = fitted_models(log)
        self._fold = fold_numbers(len(log))
        self._rng = np.random.default_rng(seed)
        self._bounds = log.problem.scale.bounds
        self.slot_propensity, self.slots_estimated = _slot_propensities(log, seed)
        self._never = [
            np.bincount(log.action[:, slot].astype(np.int64), minlength=len(one.choices)) == 0
            for slot, one in enumerate(log.schema.menu.slots)
        ]

    def of(self, learned: Learned) -> Seen:
        """The evidence about a learned policy."""
        check_schema(learned, self.log)
        look = self._listed if self._lists() else self._drawn
        parts = [look(learned, *rows) for rows in self._rows()]
        evidence = Evidence.joined([part.evidence for part in parts])
        return Seen(evidence, np.concatenate([part.unsupported for part in parts]))

    def of_the_log(self) -> Seen:
        """The evidence about the policy that wrote the log."""
        log = self.log
        predicted = np.concatenate(
            [self._predicted(part, rows) for part, rows in self._rows()],
        )
        ones = np.ones(len(log))
        slots = None if self.slot_propensity is None else np.ones(log.action.shape)
        evidence = Evidence(
            log.reward, ones, log.propensity, predicted, predicted, slots, self._bounds
        )
        return Seen(evidence, np.zeros(len(log)))

    def never_taken(self) -> list[str]:
        """Choices that the log does not have."""
        return [
            choice.name
            for slot, missing in zip(self.log.schema.menu.slots, self._never, strict=True)
            for choice, one in zip(slot.choices, missing, strict=True)
            if one
        ]

    def _lists(self) -> bool:
        return not self._space.reals and self._space.size <= LISTED

    def _rows(self) -> Iterator[tuple[Columns, slice]]:
        """The rows in parts whose probabilities fit into memory."""
        size = self._space.size if self._lists() else DRAWS * 64
        step, first = max(AT_ONCE // size, 1), 0
        for part in self.log.parts:
            for begin in range(0, len(part.reward), step):
                piece = part.rows(slice(begin, begin + step))
                yield piece, slice(first + begin, first + begin + len(piece.reward))
            first += len(part.reward)

    def _folds(self, rows: slice) -> Iterator[tuple[RewardModel, Integers]]:
        """For each model the rows, within a part, that it was fitted without."""
        for fold, model in enumerate(self._models):
            yield model, np.flatnonzero(self._fold[rows] == fold)

    def _predicted(self, part: Columns, rows: slice) -> Floats:
        powers = powers_of(self.log, part.action)
        found = np.empty(len(part.reward))
        for model, mine in self._folds(rows):
            features = model.features(part.context[mine])
            found[mine] = model.predict(features, part.action[mine], powers[mine])
        return found

    def _listed(self, learned: Learned, part: Columns, rows: slice) -> Seen:
        """By the probabilities of all joint actions."""
        table = learned.probabilities(part.context)
        if len(self.log.menus) > 1:
            table = _restricted(table, self._masks[self.log.shown[rows]])
        index = self._space.index(part.action.astype(np.int64))
        probability = table[np.arange(len(index)), index]
        shares = _slot_shares(table, self._space.choices)
        expected = np.empty(len(index))
        for model, mine in self._folds(rows):
            features = model.features(part.context[mine])
            scores = model.scores(features)
            gains = [
                (share[mine] * score).sum(axis=1)
                for share, score in zip(shares, scores, strict=True)
            ]
            expected[mine] = model.base(features) + sum(gains)
        chosen = _at(shares, part.action)
        return self._seen(part, rows, probability, expected, chosen, _lost(shares, self._never))

    def _drawn(self, learned: Learned, part: Columns, rows: slice) -> Seen:
        """By the density of the action, and draws of the policy for what it is expected to earn."""
        if len(self.log.menus) > 1:
            raise InputError(
                f"eligible choices are allowed for among up to {LISTED} joint actions without "
                "real-valued parts, and this log has others"
            )
        policy, state = learned.policy, learned.model.state
        seen = learned.model.standardization.apply(part.context.astype(np.float64))
        probability = _probability_of(learned, seen, part.action, self._space)
        count = len(part.reward)
        drawn = policy.act(state, np.repeat(seen, DRAWS, axis=0)[None], self._rng).action[0]
        for slot, numbers in enumerate(learned.model.shown):
            drawn[:, slot] = np.array(numbers)[drawn[:, slot].astype(np.int64)]
        powers = powers_of(self.log, drawn)
        value = np.empty(count * DRAWS)
        for model, mine in self._folds(rows):
            each = (mine[:, None] * DRAWS + np.arange(DRAWS)).ravel()
            features = np.repeat(model.features(part.context[mine]), DRAWS, axis=0)
            value[each] = model.predict(features, drawn[each], powers[each])
        draws = drawn.reshape(count, DRAWS, -1)[:, :, : len(self._never)].astype(np.int64)
        chosen = (draws == part.action[:, None, : len(self._never)]).mean(axis=1)
        strange = np.zeros((count, DRAWS), dtype=bool)
        for slot, never in enumerate(self._never):
            strange |= never[draws[..., slot]]
        expected = value.reshape(count, DRAWS).mean(axis=1)
        return self._seen(part, rows, probability, expected, chosen, strange.mean(axis=1))

    def _seen(
        self,
        part: Columns,
        rows: slice,
        probability: Floats,
        expected: Floats,
        chosen: Floats,
        unsupported: Floats,
    ) -> Seen:
        slots = self.slot_propensity
        evidence = Evidence(
            part.reward,
            probability / self.log.propensity[rows],
            probability,
            self._predicted(part, rows),
            expected,
            None if slots is None else chosen / slots[rows],
            self._bounds,
        )
        return Seen(evidence, unsupported)

    @cached_property
    def _masks(self) -> Booleans:
        """Which joint actions each menu allows, ``[menus, M]``."""
        found = []
        for shown in self.log.menus:
            mask = np.ones(1, dtype=bool)
            for numbers, size in zip(shown, self._space.choices, strict=True):
                mask = (mask[:, None] & np.isin(np.arange(size), numbers)).ravel()
            found.append(mask)
        return np.stack(found)


def check_schema(learned: Learned, log: Log) -> None:
    """Refuse a policy for other actions or contexts; choices may have come to be inactive."""
    same_menu = learned.schema.menu.revived == log.schema.menu.revived
    if not same_menu or learned.schema.context != log.schema.context:
        raise InputError(
            "the policy was learned for other actions or contexts than this log has: read the "
            "log with its schema, Log.read(..., schema=learned.schema)"
        )


def _probability_of(learned: Learned, seen: Floats, action: NDArray[Any], space: Space) -> Floats:
    """That of one action in each row, 0 where the policy does not know a choice."""
    kept, known = renumbered(action, learned.model.shown)
    found = np.zeros(len(action))
    if kept.any():
        actions = known.astype(space.dtype)[None]
        log_prob = learned.policy.log_prob(learned.model.state, seen[kept][None], actions)
        found[kept] = np.exp(log_prob[0])
    return found


def _restricted(table: Floats, mask: Booleans) -> Floats:
    """Probabilities among the eligible; uniform where a policy has no opinion on these."""
    kept = np.where(mask, table, 0.0)
    total = kept.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(total > 0, kept / total, mask / mask.sum(axis=1, keepdims=True))
    return found


def _slot_shares(table: Floats, sizes: tuple[int, ...]) -> list[Floats]:
    """The probabilities within each slot, ``[n, choices]``."""
    if len(sizes) == 1:
        return [table]
    joint = table.reshape(len(table), *sizes)
    every = range(1, len(sizes) + 1)
    return [joint.sum(axis=tuple(axis for axis in every if axis != slot)) for slot in every]


def _at(shares: list[Floats], action: NDArray[Any]) -> Floats:
    row = np.arange(len(action))
    chosen = [share[row, one.astype(np.int64)] for share, one in zip(shares, action.T, strict=True)]
    return np.stack(chosen, axis=1)


def _lost(shares: list[Floats], never: list[Booleans]) -> Floats:
    """The probability of a choice that the log never has; slots as if independent."""
    kept = np.ones(len(shares[0]))
    for share, missing in zip(shares, never, strict=True):
        kept *= 1 - share[:, missing].sum(axis=1)
    return 1 - kept


def _slot_propensities(log: Log, seed: int) -> tuple[Floats | None, bool]:
    """The propensity of each slot's choice, None for plain arms, and whether it is a guess."""
    menu = log.schema.menu
    if len(menu.slots) < 2 or menu.ranges:
        return None, False
    if log.slot_propensity is not None:
        gaps = np.isnan(log.slot_propensity)
        if not gaps.any():
            return log.slot_propensity, bool(log.estimated.any())
        return np.where(gaps, slot_estimates(log, seed), log.slot_propensity), True
    sizes = np.array([[len(numbers) for numbers in shown] for shown in log.menus])[log.shown]
    if np.allclose(log.propensity * sizes.prod(axis=1), 1.0, rtol=0, atol=UNIFORM):
        return 1.0 / sizes, False
    return slot_estimates(log, seed), True
