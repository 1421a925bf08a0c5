"""A model of how a log chose its actions, which estimates propensities that were not logged."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.contracts.counts import total
from submax.schema.columns import Columns
from submax.schema.schema import Schema
from submax.schema.standardization import Standardization

MOST_ROWS = 200_000
"""The model is fitted to at most this many rows: more would take longer and hardly change it."""
MOST_NUMBERS = 1 << 25
"""Probabilities, rows × choices, that are in memory together while fitting: 256 MB."""
PENALTY = 1.0
"""Ridge penalty of the coefficients of standardized contexts: a standard normal prior."""
CONSTANT_PENALTY = 1e-6
"""Ridge penalty of the constants: nearly none, so that the frequency of choices is free."""
FLOOR_SHARE = 0.05
"""An estimate is at least this share of the frequency of its choice, unless 1 / √n is lower: the
weight of a row is then at most 20 times that of a log which did not look at the context."""
MOST_STEPS = 200
"""Iterations of L-BFGS; a logistic regression converges in fewer."""


def estimate_slot_propensities(
    schema: Schema,
    context: NDArray[np.float32],
    parts: Sequence[Columns],
    action: NDArray[Any],
    eligible: Sequence[Booleans],
    eligible_set: NDArray[np.int32],
    seed: int,
    count: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return the estimated probability of each row's choice, and its floor, both ``[N, S]``.

    p_s(a_s | x) = softmax(θ_s · (1, x))[a_s], fitted by penalized maximum likelihood; choices that
    were not eligible have probability 0. The estimates are not yet raised to the floor.

    A model extrapolates, so that an estimate can be much too small, and one row with a huge weight
    then decides. The floor of choice a is min(1/√N, f_a / 20), where f_a is the share of rows that
    took a: truncation at √N keeps an importance-weighted mean consistent (Ionides, 2008).

    ``context``, ``parts``, ``action`` and ``eligible_set`` are those of a ``Log``; ``eligible``
    has for each slot which choices are in each eligible set, ``[sets, choices]``. ``seed`` draws
    the rows to which the model is fitted if there are more than ``MOST_ROWS``; ``count`` is the
    number of decisions of each row.
    """
    if schema.menu.ranges:
        raise InputError(
            "this log has real-valued actions without propensities, which cannot be estimated: "
            "log the density of each action as its propensity"
        )
    standardization = Standardization.of(parts, schema.context.numeric)
    row = np.arange(len(action))
    most_choices = max(len(slot.choices) for slot in schema.menu.slots)
    most_rows = min(MOST_ROWS, MOST_NUMBERS // most_choices)
    if len(row) > most_rows:
        row = np.sort(np.random.default_rng(seed).choice(len(row), most_rows, replace=False))
    features = with_constant(schema.context.encode_rows(context[row]), standardization)
    counted = None if count is None else count[row]
    models = [
        fitted_softmax(features, action[row, slot], mask[eligible_set[row]], counted)
        for slot, mask in enumerate(eligible)
    ]
    estimates = np.empty(action.shape)
    first = 0
    for part in parts:
        rows = slice(first, first + len(part.reward))
        features = with_constant(part.context, standardization)
        for slot, (theta, mask) in enumerate(zip(models, eligible, strict=True)):
            probabilities = eligible_softmax(features @ theta, mask[eligible_set[rows]])
            chosen = action[rows, slot]
            estimates[rows, slot] = probabilities[np.arange(len(chosen)), chosen]
        first = rows.stop
    return estimates, _floors(action, [len(slot.choices) for slot in schema.menu.slots], count)


def _floors(action: NDArray[Any], sizes: Sequence[int], count: Floats | None) -> Floats:
    """Return the lowest propensity of each row's choice in each slot, ``[N, S]``."""
    decisions = total(action, count)
    floors = np.empty((len(action), len(sizes)))
    for slot, size in enumerate(sizes):
        chosen = action[:, slot].astype(np.int64)
        frequency = np.bincount(chosen, count, minlength=size) / decisions
        floors[:, slot] = np.minimum(1 / np.sqrt(decisions), FLOOR_SHARE * frequency)[chosen]
    return floors


def with_constant(context: NDArray[np.float32], standardization: Standardization) -> Floats:
    """Return the features of a linear model: 1 and the standardized context, ``[n, 1 + D]``."""
    standardized = standardization.apply(context.astype(np.float64))
    return np.concatenate([np.ones((len(standardized), 1)), standardized], axis=1)


def eligible_softmax(score: Floats, eligible: Booleans) -> Floats:
    """Return the softmax of the scores over the eligible choices."""
    score = np.where(eligible, score, -np.inf)
    score -= score.max(axis=1, keepdims=True)
    np.exp(score, out=score)
    score /= score.sum(axis=1, keepdims=True)
    return score


def fitted_softmax(
    features: Floats, chosen: NDArray[Any], eligible: Booleans, count: Floats | None = None
) -> Floats:
    """Return the coefficients ``[1 + D, choices]`` of a multinomial logistic regression.

    ``count`` is the number of decisions of each row.
    """
    shape = (features.shape[1], eligible.shape[1])
    row: Integers = np.arange(len(chosen))
    taken = np.zeros(eligible.shape)
    taken[row, chosen] = 1.0
    weight = np.ones(len(chosen)) if count is None else count
    decisions = float(weight.sum())
    penalty = np.full(shape, PENALTY)
    penalty[0] = CONSTANT_PENALTY

    def loss(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(shape)
        probabilities = eligible_softmax(features @ theta, eligible)
        value = -weight @ np.log(probabilities[row, chosen]) + 0.5 * (penalty * theta**2).sum()
        excess = weight[:, None] * (probabilities - taken)
        gradient = features.T @ excess + penalty * theta
        return float(value) / decisions, gradient.ravel() / decisions

    found = scipy.optimize.minimize(
        loss,
        np.zeros(shape[0] * shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MOST_STEPS},
    )
    theta: Floats = found.x.reshape(shape)
    return theta
