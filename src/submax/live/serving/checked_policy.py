"""Asks the policy of a version, and answers uniformly if it fails."""

import logging
import math
from collections import Counter
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError, counted_fallbacks, one_line
from submax.core.numerics import TOLERANCE
from submax.core.policy import Policy, probabilities_by
from submax.core.processes import ONE_THREAD
from submax.core.spaces import Space
from submax.live.serving.action_sampler import DrawnAction
from submax.live.serving.guarded import adds_up
from submax.live.serving.unlisted_actions import encoded_action, uniform_action
from submax.schema.menu import ChoiceIndices
from submax.schema.model import Model

SIMPLER = "decisions taken more simply than asked"
"""The name under which fallbacks inside a policy are counted among the failures of a bandit."""
UNIFORM = "decisions by a policy that failed"
"""The name under which decisions are counted that were uniform because the policy failed."""
LOG = logging.getLogger("submax")
MAX_CACHED_STATES = 32
"""The number of different sets of eligible choices whose states are cached: with a context, each
may take half a megabyte."""


class CheckedPolicy:
    """A policy with the model of a version; what the policy returns is checked.

    If the policy fails, decisions are uniform, because callers wait for an answer. This is counted
    in ``failures``, and its reason is logged once.
    """

    def __init__(
        self, policy: Policy[Any], model: Model, version: int, failures: Counter[str]
    ) -> None:
        self.policy, self.model, self._version = policy, model, version
        self._failures, self._has_failed = failures, False
        self._restricted = lru_cache(MAX_CACHED_STATES)(
            lambda eligible: policy.restricted(model.state, eligible)
        )

    def probabilities(self, context: Floats, eligible: ChoiceIndices | None = None) -> Floats:
        """The probabilities of all joint actions of the model, ``[1, n, D] -> [n, M]``.

        If choices are ``eligible``, by their indices in the model, the policy decides among the
        joint actions of these alone, and M is their number.
        """
        rows, size = context.shape[1], math.prod(map(len, eligible or self.model.active))
        try:
            # One decision needs no limit of threads, and would take half as long again with it.
            with counted_fallbacks() as simpler, ONE_THREAD if rows > 1 else nullcontext():
                listed = self._listed(context, eligible)
            if simpler:
                self._failures[SIMPLER] += sum(simpler)
            found = self._with_shape(listed, (1, rows, size))
            if rows == 1 and adds_up(found[0]):
                return found
            # The comparisons are also false for NaN.
            sums, least = np.add.reduce(found, axis=1), np.minimum.reduce(found, axis=1)
            valid = (abs(sums - 1) <= TOLERANCE) & (least >= 0)
            if valid.all():
                return found
            self._count_failures(
                f"the probabilities of {self.policy!r:.80} must be 0 or more and sum to 1, and "
                f"they are {found[~valid][0]}: test the policy with submax.testing.policies",
                int((~valid).sum()),
            )
            return np.where(valid[:, None], found, 1 / size)
        except Exception as error:
            self._count_failures(one_line(error), rows)
        return np.full((rows, size), 1 / size)

    def _listed(self, context: Floats, eligible: ChoiceIndices | None) -> Floats:
        if eligible is None:
            return self.policy.probabilities(self.model.state, context)
        smaller = self._restricted(eligible)
        return probabilities_by(self.policy, smaller, self.model.state, context, eligible)

    def draw(
        self, context: Floats, space: Space, eligible: ChoiceIndices, rng: np.random.Generator
    ) -> DrawnAction:
        """Let the policy draw an action of ``space`` in a context ``[1, 1, D]``."""
        try:
            with counted_fallbacks() as simpler:
                drawn = self._drawn(context, eligible, rng)
            self._failures[SIMPLER] += sum(simpler)
            return drawn
        except Exception as error:
            self._count_failures(one_line(error))
            return uniform_action(space, eligible, rng)

    def _drawn(
        self, context: Floats, eligible: ChoiceIndices, rng: np.random.Generator
    ) -> DrawnAction:
        decision = self.policy.act(self.model.state, context, rng)
        found = decision.log_prob
        if found is None:
            found = self.policy.log_prob(self.model.state, context, decision.action)
        propensity = math.exp(found[0, 0])
        if not 0 < propensity < math.inf:
            raise InputError(f"the probability of an action that was drawn is {propensity}")
        return DrawnAction(encoded_action(decision.action[0, 0], eligible), propensity, None)

    def _with_shape(self, listed: Any, shape: tuple[int, ...]) -> Floats:
        """The probabilities of all rows; an ``InputError`` if they have another shape."""
        if np.shape(listed) != shape:
            raise InputError(
                f"the probabilities of {self.policy!r:.80} must be an array of shape {shape}, "
                f"and they have shape {np.shape(listed)}: test the policy with "
                "submax.testing.policies"
            )
        found: Floats = np.asarray(listed)[0]
        return found

    def _count_failures(self, reason: str, count: int = 1) -> None:
        """Count failures; log only the first, since there may be a thousand in a second."""
        if not self._has_failed:
            LOG.error("version %d could not decide, so this was uniform: %s", self._version, reason)
        self._has_failed = True
        self._failures[UNIFORM] += count
