"""Propensities that were not logged, guessed by a model."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.schema.standardization import Standardization

if TYPE_CHECKING:
    from submax.evaluation.logs.log import Log

MOST_ROWS = 200_000
"""The model is fitted to at most so many rows."""
MOST_NUMBERS = 1 << 25
"""Probabilities that are held at a time."""
PENALTY = 1.0
"""Of squared coefficients, but for those of the constant."""
ROUNDS = 200


def with_estimates(log: "Log", seed: int) -> "Log":
    """Fill the gaps; slots are taken as chosen independently.

    By the product of the slots' propensities where these were logged, else by the model.
    """
    if log.slot_propensity is not None and np.isnan(log.propensity).any():
        log = _from_slots(log, log.slot_propensity)
    gaps = np.isnan(log.propensity)
    if not gaps.any():
        return log
    found = slot_estimates(log, seed)
    note = f"{int(gaps.sum())} propensities are not in the log: a model estimated them"
    slots = log.slot_propensity
    return replace(
        log,
        propensity=np.where(gaps, found.prod(axis=1), log.propensity),
        slot_propensity=found if slots is None and gaps.all() else slots,
        estimated=gaps,
        notes=(*log.notes, note),
    )


def _from_slots(log: "Log", slots: Floats) -> "Log":
    product = slots.prod(axis=1)
    filled = int(np.count_nonzero(np.isnan(log.propensity) & ~np.isnan(product)))
    note = f"{filled} propensities of joint actions are the products of their slots' propensities"
    propensity = np.where(np.isnan(log.propensity), product, log.propensity)
    return replace(log, propensity=propensity, notes=(*log.notes, note))


def slot_estimates(log: "Log", seed: int) -> Floats:
    """The probability of each row's choice in each slot, ``[N, S]``.

    p_s(a_s | x) = softmax(θ_s · (1, x))[a_s], fitted by maximum likelihood; choices that were not
    eligible have probability 0.
    """
    if log.schema.menu.ranges:
        raise InputError("propensities of real-valued actions cannot be estimated: log them")
    parts = log.parts
    standardization = Standardization.of(parts, log.schema.context.numeric)
    row = np.arange(len(log))
    widest = max(len(slot.choices) for slot in log.schema.menu.slots)
    most = min(MOST_ROWS, MOST_NUMBERS // widest)
    if len(log) > most:
        row = np.sort(np.random.default_rng(seed).choice(len(log), most, replace=False))
    masks = [log.eligible_choices(slot) for slot in range(log.action.shape[1])]
    features = with_constant(log.schema.context.encode_rows(log.context[row]), standardization)
    models = [
        _fitted(features, log.action[row, slot], mask[log.shown[row]])
        for slot, mask in enumerate(masks)
    ]
    found = np.empty(log.action.shape)
    first = 0
    for part in parts:
        rows = slice(first, first + len(part.reward))
        features = with_constant(part.context, standardization)
        for slot, (theta, mask) in enumerate(zip(models, masks, strict=True)):
            probabilities = _probabilities(features @ theta, mask[log.shown[rows]])
            chosen = log.action[rows, slot]
            found[rows, slot] = probabilities[np.arange(len(chosen)), chosen]
        first = rows.stop
    return found


def with_constant(context: NDArray[np.float32], standardization: Standardization) -> Floats:
    """Features of a linear model: 1 and the standardized context, ``[n, 1 + D]``."""
    seen = standardization.apply(context.astype(np.float64))
    return np.concatenate([np.ones((len(seen), 1)), seen], axis=1)


def _probabilities(score: Floats, mask: Booleans) -> Floats:
    score = np.where(mask, score, -np.inf)
    score -= score.max(axis=1, keepdims=True)
    np.exp(score, out=score)
    score /= score.sum(axis=1, keepdims=True)
    return score


def _fitted(features: Floats, chosen: NDArray[Any], mask: Booleans) -> Floats:
    """Coefficients ``[1 + D, choices]`` of a multinomial logistic regression."""
    from scipy.optimize import minimize

    shape = (features.shape[1], mask.shape[1])
    row: Integers = np.arange(len(chosen))
    taken = np.zeros(mask.shape)
    taken[row, chosen] = 1.0
    penalty = np.full(shape, PENALTY)
    penalty[0] = 1e-6

    def loss(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(shape)
        probabilities = _probabilities(features @ theta, mask)
        value = -np.log(probabilities[row, chosen]).sum() + 0.5 * (penalty * theta**2).sum()
        gradient = features.T @ (probabilities - taken) + penalty * theta
        return float(value) / len(row), gradient.ravel() / len(row)

    found = minimize(
        loss,
        np.zeros(shape[0] * shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": ROUNDS},
    )
    theta: Floats = found.x.reshape(shape)
    return theta
