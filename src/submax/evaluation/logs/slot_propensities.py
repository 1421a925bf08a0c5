"""The propensities of the choices of each slot."""

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.logs.log import Log

UNIFORM_TOLERANCE = 1e-6
"""Relative difference from 1 / (number of eligible actions) up to which a propensity is uniform."""


def slot_propensities(log: Log, seed: int) -> tuple[Floats | None, bool]:
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
