"""Groups of actions with the same features, and how often the log took each group."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.evaluation.logs.log import Log
from submax.evaluation.logs.propensity_model import (
    MOST_ROWS,
    eligible_softmax,
    fitted_softmax,
    with_constant,
)
from submax.schema.schema import Schema
from submax.schema.standardization import Standardization

UNIFORM_TOLERANCE = 1e-6
"""Relative difference from 1 / (number of eligible actions) up to which a propensity is uniform."""


class ActionGroups(NamedTuple):
    """The group of every action, ``group_of [M]``, and the propensity of each row's group, ``[n]``.

    ``estimated`` says that a model estimated the propensities. They are known if the log was
    uniform; otherwise a log has only the propensity of the action that was taken.
    """

    group_of: Integers
    propensity: Floats
    estimated: bool

    def probability(self, table: Floats, action: Integers) -> Floats:
        """Return the probability of the group of each row's action under a policy, ``[n]``."""
        same = self.group_of[action][:, None] == self.group_of
        found: Floats = np.where(same, table, 0.0).sum(axis=1)
        return found


def group_index(schema: Schema) -> Integers | None:
    """Return the group of every action: actions with the same categories form a group.

    If no feature is a category, all features must be equal. None if actions have no features, if
    every action is a group of its own or if all are one group.
    """
    menu = schema.menu
    if len(menu.slots) != 1 or menu.ranges:
        return None
    described = [dict(choice.features or {}) for choice in menu.slots[0].choices]
    named = any(isinstance(value, str) for one in described for value in one.values())
    keys = [
        tuple(
            sorted((name, str(value)) for name, value in one.items())
            if not named
            else sorted((name, value) for name, value in one.items() if isinstance(value, str))
        )
        for one in described
    ]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    if not 1 < len(places) < len(keys):
        return None
    return np.array([places[key] for key in keys])


def action_groups(log: Log, seed: int) -> ActionGroups | None:
    """Return the groups of the actions of a log with their propensities; None if there are none."""
    index = group_index(log.schema)
    if index is None:
        return None
    # Number of eligible actions of each group in each eligible set, [sets, groups].
    eligible = log.eligible_choices(0)
    counts = np.stack([eligible[:, index == one].sum(axis=1) for one in range(index.max() + 1)], 1)
    group = index[log.action[:, 0].astype(np.int64)]
    sizes = counts.sum(axis=1)[log.eligible_set]
    if np.allclose(log.propensity * sizes, 1.0, rtol=0, atol=UNIFORM_TOLERANCE):
        return ActionGroups(index, counts[log.eligible_set, group] / sizes, estimated=False)
    return ActionGroups(index, _estimated(log, group, counts > 0, seed), estimated=True)


def _estimated(log: Log, group: Integers, eligible: Booleans, seed: int) -> Floats:
    """Return the probability of each row's group by a logistic regression on the context."""
    standardization = Standardization.of(log.parts, log.schema.context.numeric)
    row = np.arange(len(group))
    if len(row) > MOST_ROWS:
        row = np.sort(np.random.default_rng(seed).choice(len(row), MOST_ROWS, replace=False))
    context = log.schema.context.encode_rows(log.context[row])
    features = with_constant(context, standardization)
    count = None if log.count is None else log.count[row]
    theta = fitted_softmax(features, group[row], eligible[log.eligible_set[row]], count)
    found, first = np.empty(len(group)), 0
    for part in log.parts:
        rows = slice(first, first + len(part.reward))
        score = with_constant(part.context, standardization) @ theta
        table = eligible_softmax(score, eligible[log.eligible_set[rows]])
        found[rows] = table[np.arange(len(score)), group[rows]]
        first = rows.stop
    floor = 1 / np.sqrt(log.decisions) / eligible.shape[1]
    raised: Floats = np.maximum(found, floor)
    return raised
