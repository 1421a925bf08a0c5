"""Propensities that a log does not have, estimated by a model of how it chose its actions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.intervals import total
from submax.schema.rows import Columns, Standardization
from submax.schema.schema import Schema

if TYPE_CHECKING:
    from submax.evaluation.log import Log

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


def with_estimated_propensities(log: "Log", seed: int) -> "Log":
    """Return the log with unknown propensities filled in, and notes that say how many."""
    log = _with_products_of_slots(log)
    gaps = np.isnan(log.propensity)
    if not gaps.any():
        return log
    estimates, floors = modelled_propensities(log, seed)
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


def modelled_propensities(log: "Log", seed: int) -> tuple[Floats, Floats]:
    """Return a model's estimate of each slot's propensity, and its floor, both ``[N, S]``."""
    eligible = [log.eligible_choices(slot) for slot in range(len(log.schema.menu.slots))]
    return estimate_slot_propensities(
        log.schema,
        log.context,
        log.parts,
        log.action,
        eligible,
        log.eligible_set,
        seed,
        log.count,
    )


def _with_products_of_slots(log: "Log") -> "Log":
    if log.slot_propensity is None or not np.isnan(log.propensity).any():
        return log
    product = log.slot_propensity.prod(axis=1)
    filled = int(np.count_nonzero(np.isnan(log.propensity) & ~np.isnan(product)))
    note = f"{filled} propensities of joint actions are the products of their slots' propensities"
    propensity = np.where(np.isnan(log.propensity), product, log.propensity)
    return replace(log, propensity=propensity, notes=(*log.notes, note))


UNIFORM_TOLERANCE = 1e-6
"""Relative difference from 1 / (number of eligible actions) up to which a propensity is uniform."""


def slot_propensities(log: "Log", seed: int) -> tuple[Floats | None, bool]:
    """Return the propensity of each slot's choice, and whether a model estimated any of them.

    The propensities are None for plain arms and for actions with real-valued parts.
    """
    menu = log.schema.menu
    if len(menu.slots) < 2 or menu.ranges:
        return None, False
    if log.slot_propensity is not None:
        gaps = np.isnan(log.slot_propensity)
        if not gaps.any():
            return log.slot_propensity, bool(log.estimated.any())
        return np.where(gaps, log.estimated_slot_propensities(seed), log.slot_propensity), True
    sizes = np.array([[len(indices) for indices in eligible] for eligible in log.eligible_sets])
    sizes = sizes[log.eligible_set]
    if np.allclose(log.propensity * sizes.prod(axis=1), 1.0, rtol=0, atol=UNIFORM_TOLERANCE):
        return 1.0 / sizes, False
    return log.estimated_slot_propensities(seed), True
