"""Fills in the propensities that a log does not have."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.logs.propensity_model import estimate_slot_propensities

if TYPE_CHECKING:
    from submax.evaluation.logs.log import Log


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
