"""Contract of a belief: the answers of an estimator in given contexts."""

from abc import abstractmethod

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.spaces.space import Space


class Belief(ConditionalDistribution):
    """What an estimator has learned, asked in n given contexts of each of R replicas.

    It is the table from which a strategy makes a policy: p(action | context, reward level), the
    L reward levels, and how often each level occurs. Estimators whose actions can be listed return
    a `ListedBelief` and need not write a class of their own.
    """

    @property
    @abstractmethod
    def space(self) -> Space:
        """The space of the actions."""

    @abstractmethod
    def levels(self) -> Floats:
        """Return the rewards that are conditioned on, lowest first: ``[R, L]``."""

    @abstractmethod
    def level_prior(self) -> Floats:
        """Return how often each level occurs, ``[R, n, L]``; exactly 0 for one never observed."""

    def prob_of_all(self) -> Floats:
        """Return the probability of every joint action, by its index: ``[R, n, L, space.size]``."""
        return self.prob(self.space.listing()[None, None])

    def prob_of_choices(self) -> list[Floats]:
        """Return each slot's probabilities, summed over the other slots: ``[R, n, L, choices]``.

        Overridden by a belief that can do this without listing joint actions.
        """
        return sums_by_slot(self.prob_of_all(), self.space.choices)

    def expected_rewards(self) -> Floats:
        """Return the expected reward of every joint action, ``[R, n, space.size]``.

        E[r | a] = Σ_l r_l p(l) p(a | l) / Σ_l p(l) p(a | l), by Bayes' rule. NaN if p(a | l) is 0
        at every level that was observed.
        """
        joint = self.prob_of_all() * self.level_prior()[..., None]
        total, earned = joint.sum(axis=2), np.einsum("rnla,rl->rna", joint, self.levels())
        found: Floats = np.full(total.shape, np.nan)
        np.divide(earned, total, out=found, where=total > 0)
        return found

    def values(self) -> Floats | None:
        """Return the importance-sampled reward of each conditioned policy, ``[R, L]``.

        V_l = (1/N) Σ_i r_i π(a_i | c_i, l) / q_i over the N observations so far, with q_i the
        logged probability of action a_i. V_l does not depend on the contexts of the belief. It is
        NaN if q_i was not logged for some reward other than 0.

        None, the default, means that the estimator does not keep what V_l needs. Strategies that
        need these values (optimized, linear-program) then refuse the estimator.
        """
        return None


def sums_by_slot(joint: Floats, sizes: tuple[int, ...]) -> list[Floats]:
    """Sum over all slots but one, for each slot: ``[..., M] -> [..., choices]``.

    >>> import numpy as np
    >>> sums_by_slot(np.arange(6.0), (2, 3))
    [array([ 3., 12.]), array([3., 5., 7.])]
    """
    cube = joint.reshape(*joint.shape[:-1], *sizes)
    slots = range(-len(sizes), 0)
    return [cube.sum(axis=tuple(set(slots) - {slot})) for slot in slots]
