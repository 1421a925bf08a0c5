"""Contract of an estimator."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.conditioning.conditioned import Conditioned
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.spaces.space import Space

Params = TypeVar("Params")


class Estimator(ABC, Generic[Params]):
    """A belief: p(action | context, reward level), learned by supervised learning."""

    @abstractmethod
    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Params:
        """The belief before any feedback."""

    @abstractmethod
    def fit(self, params: Params, feedback: Feedback, rng: np.random.Generator) -> Params:
        """The belief after more feedback; what must be remembered of the old is in ``params``."""

    @abstractmethod
    def log_prob(self, params: Params, context: Floats, action: Actions) -> Floats:
        """Log-probability of M actions at every level.

        ``context [R, n, D]`` and ``action [R or 1, n or 1, M, S]`` give ``[R, n, L, M]``, all
        levels from the same random draws where there are any. Without context n is 1.
        """

    def prob(self, params: Params, context: Floats, action: Actions) -> Floats:
        """The same as probabilities; an estimator that need not take logarithms overrides this."""
        return np.exp(self.log_prob(params, context, action))

    def prob_of_all(self, params: Params, context: Floats, space: Space) -> Floats:
        """Probability of every joint action in the order of its index, ``[R, n, L, space.size]``.

        An estimator that has them all at hand overrides this.
        """
        return self.prob(params, context, space.listing()[None, None])

    def prob_of_choices(self, params: Params, context: Floats, space: Space) -> list[Floats]:
        """The probability of each slot's choices, whatever the others: ``[R, n, L, choices]``.

        An estimator that need not list joint actions for it overrides this, and one that knows
        more about the choices of a slot than about joint actions.
        """
        return sums_by_slot(self.prob_of_all(params, context, space), space.choices)

    @abstractmethod
    def sample(
        self,
        params: Params,
        context: Floats,
        level: int,
        count: int,
        rng: np.random.Generator,
    ) -> Actions:
        """Draw ``count`` actions at one level: ``[R, n, count, S]``."""

    @abstractmethod
    def levels(self, params: Params) -> Floats:
        """The rewards conditioned on, lowest first: ``[R, L]``."""

    @abstractmethod
    def level_prior(self, params: Params, context: Floats) -> Floats:
        """How often each level occurs, ``[R, n, L]``; exactly 0 for a level never observed."""

    @abstractmethod
    def values(self, params: Params) -> Floats:
        """Importance-sampled reward of each conditioned policy, ``[R, L]``.

        V_l = (1/N) Σ_i r_i π(a_i | c_i, l) / q_i over the N observations so far, with q_i the
        logged probability. NaN where it was not logged for some reward other than 0.
        """

    def evidence(self, params: Params, context: Floats) -> Floats:
        """How many observations π(· | c, l) is worth, smoothing included: ``[R, n, L]``.

        Only some strategies ask; an estimator that can tell overrides this.
        """
        raise InputError(
            f"the {type(self).__name__} estimator does not say how many observations its belief "
            "is worth, and the strategy must know: take another, such as submax"
        )

    def evidence_of_choices(self, params: Params, context: Floats, space: Space) -> list[Floats]:
        """The same for each slot, where its choices stand for themselves."""
        return [self.evidence(params, context)] * space.slots

    def conditioned(self, params: Params, context: Floats) -> Conditioned:
        """The belief in these contexts; an estimator that can prepare something overrides this."""
        return _AsAsked(self, params, context)

    @property
    def facts(self) -> Facts:
        """What callers rely on beyond the probabilities."""
        return Facts()

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Instances that the conformance suite runs."""


def sums_by_slot(joint: Floats, sizes: tuple[int, ...]) -> list[Floats]:
    """Sums over all slots but one, for each slot: ``[..., M] -> [..., choices]``.

    >>> sums_by_slot(np.arange(6.0), (2, 3))
    [array([ 3., 12.]), array([3., 5., 7.])]
    """
    cube = joint.reshape(*joint.shape[:-1], *sizes)
    slots = range(-len(sizes), 0)
    return [cube.sum(axis=tuple(set(slots) - {slot})) for slot in slots]


@dataclass(frozen=True)
class _AsAsked(Conditioned):
    """Ask the estimator every time."""

    estimator: Estimator[Any]
    params: Any
    context: Floats

    def prob(self, action: Actions) -> Floats:
        return self.estimator.prob(self.params, self.context, action)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Actions:
        return self.estimator.sample(self.params, self.context, level, count, rng)

    def rows(self, row: Integers) -> Conditioned:
        context = np.take_along_axis(self.context, row[..., None], axis=1)
        return _AsAsked(self.estimator, self.params, context)
