"""Missing propensities of a log, estimated by a model of how the log chose its actions."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.log import Log
from submax.models.regression.softmax import SoftmaxRegression
from submax.schema.rows import ContextMoments

MOST_ROWS = 200_000
"""The model is fitted to at most this many rows: more would take longer and hardly change it."""
MOST_NUMBERS = 1 << 25
"""Most probabilities, rows × choices, that are in memory while fitting: 256 MB."""
FLOOR_SHARE = 0.05
"""An estimate is at least this share of the frequency of its choice, unless 1 / √n is lower. So a
weight is at most 20 times what it would be if the log had ignored the context."""


class PropensityModel:
    """Estimates the propensity of each slot's choice from the context.

    Each slot has a ``SoftmaxRegression`` of its eligible choices on the standardized context. Slots
    are treated as chosen independently.

    A model extrapolates, so an estimate can be much too small, and a single row with a huge weight
    would dominate. So estimates of choice a are raised to the floor min(1/√N, f_a / 20), where f_a
    is the share of rows that took a: truncation at √N keeps an importance-weighted mean consistent
    (Ionides, 2008).

    The model is fitted to the rows of a log, or to ``MOST_ROWS`` random ones (by ``seed``) if there
    are more. It then estimates the propensities of these and of other rows.
    """

    def __init__(self, log: Log, seed: int) -> None:
        menu, context = log.schema.menu, log.schema.context
        if menu.ranges:
            raise InputError(
                "this log has real-valued actions without propensities, and they cannot be "
                "estimated: log the density of each action as its propensity"
            )
        sizes = [len(slot.choices) for slot in menu.slots]
        row = random_rows(len(log), min(MOST_ROWS, MOST_NUMBERS // max(sizes)), seed)
        moments = ContextMoments.empty(len(context.numeric))
        moments = moments.after(log.parts if any(context.numeric) else ())
        self._standardization = moments.standardization(context.numeric)
        features = self._features(context.encode_rows(log.context[row]))
        weight, decisions = log.counts[row], float(log.counts.sum())
        self._regressions, self._floors = list[SoftmaxRegression](), list[Floats]()
        for slot, size in enumerate(sizes):
            chosen = log.action[:, slot].astype(np.int64)
            eligible = log.eligible_choices(slot)[log.eligible_set[row]]
            regression = SoftmaxRegression.fitted(features, chosen[row], eligible, weight)
            self._regressions.append(regression)
            frequency = np.bincount(chosen, log.counts, minlength=size) / decisions
            self._floors.append(np.minimum(1 / np.sqrt(decisions), FLOOR_SHARE * frequency))

    def estimates(self, log: Log) -> tuple[Floats, Floats]:
        """Return the estimated propensity of each slot's choice, and its floor, ``[N, S]``."""
        action = log.action[:, : len(self._regressions)].astype(np.int64)
        eligible = [log.eligible_choices(slot) for slot in range(len(self._regressions))]
        found, first = np.empty(action.shape), 0
        for part in log.parts:
            rows = slice(first, first + len(part.reward))
            features, each = self._features(part.context), np.arange(len(part.reward))
            for slot, regression in enumerate(self._regressions):
                mask = eligible[slot][log.eligible_set[rows]]
                probabilities = regression.probabilities(features, mask)
                found[rows, slot] = probabilities[each, action[rows, slot]]
            first = rows.stop
        floors = [floors[action[:, slot]] for slot, floors in enumerate(self._floors)]
        return found, np.stack(floors, axis=1)

    def _features(self, context: NDArray[np.float32]) -> Floats:
        """Return 1 and the standardized context, ``[n, 1 + D]``."""
        standardized = self._standardization.apply(context.astype(np.float64))
        return np.concatenate([np.ones((len(standardized), 1)), standardized], axis=1)


def random_rows(rows: int, most: int, seed: int) -> Integers:
    """Return the numbers of all rows, or of ``most`` random ones, in their order."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def randomly_thinned(log: Log, most: int, seed: int) -> Log:
    """Return the log, or about ``most`` random rows of it; a session is taken as a whole.

    Every k-th row would not do: logs may take their actions in turn.
    """
    if len(log) <= most:
        return log
    if log.session is None:
        return log.rows(random_rows(len(log), most, seed))
    sessions = int(log.session.max()) + 1
    chosen = random_rows(sessions, max(sessions * most // len(log), 1), seed)
    return log.rows(np.isin(log.session, chosen))


def with_estimated_propensities(log: Log, seed: int, model: PropensityModel | None = None) -> Log:
    """Return the log with all propensities, by default with a ``model`` fitted to this log."""
    log = with_products_of_slots(log)
    gaps = np.isnan(log.propensity)
    if not gaps.any():
        return log
    estimates, floors = (model or PropensityModel(log, seed)).estimates(log)
    raised = np.maximum(estimates, floors)
    factor = np.where(gaps, (raised / estimates).prod(axis=1), 1.0)
    notes = [f"{int(gaps.sum())} propensities are missing, and were estimated by a model"]
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


def with_products_of_slots(log: Log) -> Log:
    """Return the log with products of slots' propensities in place of unknown propensities."""
    if log.slot_propensity is None or not np.isnan(log.propensity).any():
        return log
    product = log.slot_propensity.prod(axis=1)
    filled = int(np.count_nonzero(np.isnan(log.propensity) & ~np.isnan(product)))
    note = f"{filled} missing propensities are the products of their slots' propensities"
    propensity = np.where(np.isnan(log.propensity), product, log.propensity)
    return replace(log, propensity=propensity, notes=(*log.notes, note))


UNIFORM_TOLERANCE = 1e-6
"""Largest relative difference of a uniform propensity from 1 / (number of eligible actions)."""


class SlotPropensities:
    """The propensity of each slot's choice: logged, uniform, or estimated by a model.

    A sample of a log decides which, and the same is used for all batches of the log. ``estimated``
    says that a model estimated some of them. ``known`` is False for plain arms and for actions with
    real-valued parts: they have none.
    """

    def __init__(self, log: Log, seed: int) -> None:
        menu, logged = log.schema.menu, log.slot_propensity
        self.known = len(menu.slots) > 1 and not menu.ranges
        self.estimated, self._model = False, None
        if not self.known:
            return
        if logged is not None:
            needed = bool(np.isnan(logged).any())
        else:
            choices = log.eligible_sizes()[log.eligible_set].prod(axis=1)
            needed = not np.allclose(log.propensity * choices, 1, rtol=0, atol=UNIFORM_TOLERANCE)
        self._model = PropensityModel(log, seed) if needed else None
        self.estimated = needed or (logged is not None and bool(log.estimated.any()))

    def of(self, log: Log) -> Floats | None:
        """Return the propensities of the rows of a log, ``[N, S]``; None if there are none."""
        logged = log.slot_propensity
        if not self.known:
            return None
        if self._model is None:
            return 1.0 / log.eligible_sizes()[log.eligible_set] if logged is None else logged
        modelled: Floats = np.maximum(*self._model.estimates(log))
        return modelled if logged is None else np.where(np.isnan(logged), modelled, logged)
