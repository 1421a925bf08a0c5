"""A belief about some of the actions."""

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.belief import Belief
from submax.core.conditioning.listed_belief import ListedBelief
from submax.core.spaces.space import Choices
from submax.strategies.observation_weights import ObservationWeights


class RestrictedBelief(ListedBelief, ObservationWeights):
    """What a belief says if only the actions of some choices are eligible.

    With E the eligible actions and m_l = Σ_{a ∈ E} p(a | c, l), the probabilities become
    p(a | c, l) / m_l, the levels occur in proportion to p(l) m_l, and the belief is worth m_l times
    as many observations: all as among the observations of eligible actions. Where no eligible
    action was observed at a level, all of them are equally likely, and the level does not occur.
    """

    def __init__(self, belief: Belief, choices: Choices) -> None:
        kept = belief.space.indices_of(choices)
        table = belief.prob_of_all()[..., kept]
        mass = table.sum(axis=-1)
        listed = np.full(table.shape, 1 / len(kept))
        np.divide(table, mass[..., None], out=listed, where=mass[..., None] > 0)
        prior = belief.level_prior() * mass
        total = prior.sum(axis=-1, keepdims=True)
        prior = np.where(total > 0, prior / np.where(total > 0, total, 1.0), belief.level_prior())
        space = belief.space.restricted(choices)
        super().__init__(space, belief.levels(), prior, listed, belief.values())
        self._belief, self._mass = belief, mass

    def observation_weights(self) -> Floats:
        assert isinstance(self._belief, ObservationWeights), "init has checked it"
        weights: Floats = self._belief.observation_weights() * self._mass
        return weights

    def observation_weights_by_slot(self) -> list[Floats]:
        return [self.observation_weights()] * self.space.slots
