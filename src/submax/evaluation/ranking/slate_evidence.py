"""What a log of slates says about other ranking policies."""

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError, one_line
from submax.evaluation.ranking.ranking_evidence import RankingEvidence
from submax.evaluation.ranking.ranking_policy import RankingPolicy
from submax.evaluation.ranking.slates import Slates

FOLDS = 3
"""Folds of the cross-fitting: predictions of a slate are fitted to the slates of other folds."""
PRIOR_SLATES = 10.0
"""Slates with the mean of their position that are added to those of each item: a weak prior."""
MOST_NUMBERS = 1 << 22
"""Probabilities, slates × positions × items, that are in memory together: 32 MB."""


class SlateEvidence:
    """A log of slates on which ranking policies are evaluated.

    ``logging`` is the policy that wrote the log, if it is known as an object: its probabilities of
    items at other positions cannot be logged in a row.
    """

    def __init__(self, slates: Slates, logging: RankingPolicy | None, seed: int) -> None:
        self.slates, self._logging = slates, logging
        self._bounds = (0.0, 1.0) if np.isin(slates.reward, (0, 1)).all() else None
        shape = (len(slates), slates.positions)
        self._logged = None if logging is None else logging.marginal(*shape)
        self._fold = np.random.default_rng(seed).integers(FOLDS, size=len(slates))
        self._tables = [self._fitted(self._fold != fold) for fold in range(FOLDS)]

    def about_logging_policy(self) -> RankingEvidence:
        """Return the evidence about the policy that wrote the log: all weights are 1."""
        slates = self.slates
        ones = np.ones(slates.reward.shape)
        return RankingEvidence(slates.reward, slates.filled, ones, ones, bounds=self._bounds)

    def about(self, policy: RankingPolicy | str) -> RankingEvidence:
        """Return the evidence about a policy: an object, or the name of one given by columns."""
        slates = self.slates
        if isinstance(policy, str):
            one_of("policy given by a column:", policy, slates.given)
            found, own_marginal = slates.given[policy], slates.given_marginal.get(policy)
            placed = predicted = expected = None
        else:
            found, predicted, expected = self._listed(policy)
            marginal = policy.marginal(len(slates), slates.positions)
            placed = None if marginal is None else _placed(marginal, slates.item)
            own_marginal = None if placed is None else _own(placed)
        logged_placed = None if self._logged is None else _placed(self._logged, slates.item)
        logged = slates.marginal if logged_placed is None else _own(logged_placed)
        return RankingEvidence(
            slates.reward,
            slates.filled,
            np.where(slates.filled, found / slates.propensity, 1.0),
            None if own_marginal is None or logged is None else _ratio(own_marginal, logged),
            placed,
            logged_placed,
            predicted,
            expected,
            self._bounds,
        )

    def _conditional(self, policy: RankingPolicy) -> Floats:
        """Return the probabilities of all items at each position; refuse those of other slates."""
        slates = self.slates
        wanted = (len(slates), slates.positions, len(slates.items))
        known = ", ".join(slates.items)[:80]
        try:
            table = policy.conditional(slates.item)
        except (ValueError, IndexError) as error:
            raise InputError(
                f"the policy cannot rank these slates ({one_line(error)}); one for {wanted[0]} "
                f"slates of {wanted[1]} positions and {wanted[2]} items is allowed: give a number "
                f"for each of the items {known}, in this order",
                parameter="policies",
            ) from error
        if table.shape != wanted:
            raise InputError(
                f"the policy ranks {table.shape[2]} items on {table.shape[1]} positions, and the "
                f"log has {wanted[2]} items on {wanted[1]} positions: give a number for each of "
                f"the items {known}, in this order",
                parameter="policies",
            )
        return table

    def _listed(self, policy: RankingPolicy) -> tuple[Floats, Floats, Floats]:
        """Return the probability of the items, and q̂ of them and in expectation, ``[n, K]``."""
        slates = self.slates
        shape = slates.item.shape
        chosen = np.maximum(slates.item, 0)
        found, predicted, expected = np.ones(shape), np.zeros(shape), np.zeros(shape)
        # A policy with scores for each slate needs all slates together.
        table = self._conditional(policy)
        position = np.arange(shape[1])
        step = max(1, MOST_NUMBERS // (shape[1] * len(slates.items)))
        for first in range(0, shape[0], step):
            rows = slice(first, first + step)
            part, item = table[rows], chosen[rows]
            q = np.stack(self._tables)[self._fold[rows]]
            found[rows] = np.take_along_axis(part, item[..., None], axis=2)[..., 0]
            predicted[rows] = q[np.arange(len(item))[:, None], position, item]
            expected[rows] = (part * q).sum(axis=2)
        return found, predicted, expected

    def _fitted(self, which: Booleans) -> Floats:
        """Return q̂, the mean of the rewards from a position on, by position and item, ``[K, M]``.

        Items with few slates are shrunk to the mean of the position.
        """
        slates = self.slates
        item, filled = slates.item[which], slates.filled[which]
        ahead = np.cumsum(slates.reward[which][:, ::-1], axis=1)[:, ::-1]
        table = np.zeros((slates.positions, len(slates.items)))
        for position in range(slates.positions):
            taken = filled[:, position]
            if not taken.any():
                continue
            values, chosen = ahead[taken, position], item[taken, position]
            sums = np.bincount(chosen, values, minlength=table.shape[1])
            counts = np.bincount(chosen, minlength=table.shape[1])
            prior = PRIOR_SLATES * values.mean()
            table[position] = (sums + prior) / (counts + PRIOR_SLATES)
        return table


def _placed(marginal: Floats, item: Integers) -> Floats:
    """Return the probability of the item at position k at every position j, ``[n, K, K]``."""
    chosen = np.maximum(item, 0)
    if len(marginal) == 1:
        found: Floats = marginal[0].T[chosen]
        return found
    return np.take_along_axis(marginal.swapaxes(1, 2), chosen[..., None], axis=1)


def _own(placed: Floats) -> Floats:
    """Return the probability of every item at its own position, ``[n, K]``."""
    return np.diagonal(placed, axis1=1, axis2=2)


def _ratio(above: Floats, below: Floats) -> Floats:
    found: Floats = np.divide(above, below, out=np.zeros(above.shape), where=below > 0)
    return found
