"""A fitted classifier, and its probabilities of actions."""

from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError, one_line
from submax.core.running.fallback import FallbackWarning, fall_back


class Unpredicted(FallbackWarning):
    """The classifier gave no probabilities for some decisions, and counts were used instead."""


class FittedClassifier(NamedTuple):
    """A fitted ``model``, and the actions ``seen [K]`` in its rows, in the order of its classes."""

    model: Any
    seen: Integers

    def expected_counts(self, features: Floats, counts: Floats) -> Floats:
        """Return N_l p̂(a | c, r_l) for n contexts: ``[n · L, W]`` and ``[L, A] -> [n, L, A]``.

        N_l is the sum of the ``counts`` of level l. If the model gives no probabilities for a row,
        the counts themselves are returned for it, and a fallback is reported.
        """
        levels, size = counts.shape
        found = self.probabilities(features, size).reshape(-1, levels, size)
        known: Booleans = np.isfinite(found.sum(axis=-1))
        if not known.all():
            decisions = len(known) - int(np.count_nonzero(known.all(axis=1)))
            message = (
                f"the classifier {type(self.model).__name__} gave no probabilities in {decisions} "
                f"of {len(known)} contexts; the share of each action at the level is used instead"
            )
            fall_back(Unpredicted, message, decisions)
        total = counts.sum(axis=-1, keepdims=True)
        expected: Floats = np.where(known[..., None], total * found, counts)
        return expected

    def probabilities(self, features: Floats, size: int) -> Floats:
        """Return the probability p̂ of each of ``size`` actions: ``[m, W] -> [m, size]``.

        An action that did not occur in the rows has probability 0. A row is NaN if the model's
        outputs for it are negative, not finite, or all 0.
        """
        found = np.zeros((len(features), size))
        if len(features):
            given = self._predicted(features)
            total = given.sum(axis=1, keepdims=True)
            fits = np.isfinite(total) & (total > 0) & (given.min(axis=1, keepdims=True) >= 0)
            # Some libraries compute in float32, so that their sums differ from 1 by rounding.
            found[:, self.seen] = np.where(fits, given / np.where(fits, total, 1.0), np.nan)
        return found

    def _predicted(self, features: Floats) -> Floats:
        try:
            return np.asarray(self.model.predict_proba(features), dtype=np.float64)
        except Exception as error:
            raise InputError(
                f"the classifier {type(self.model).__name__} cannot predict among "
                f"{len(self.seen)} actions ({one_line(error)}); any that can is allowed: change "
                "its parameters, or set minimum_rows to wait for more rows"
            ) from error
