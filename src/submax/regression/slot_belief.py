"""What is believed about the reward of a joint action, slot by slot."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.running.stored import stored
from submax.regression.fitting import fitted
from submax.regression.prior import Prior, PriorStructure
from submax.regression.slot_map import GROUPS, SlotMap
from submax.regression.sums import Sums

GROWTH = 1.6
"""The map is made anew whenever there are this many times as many rows as when it was made."""
FIRST_STEPS, STEPS = 5, 1
"""Fixed-point steps for the prior of a new map, and later for each time it is fitted again."""
PRIOR_SHARE = 0.1
"""The prior is fitted again when the rows have grown by this share."""


@dataclass(frozen=True)
class SlotSettings:
    """How a belief about slots with these ``sizes`` is learned; see `BeliefSettings`."""

    sizes: tuple[int, ...]
    effects: int
    rows: int
    draws: int
    width: float
    pairs: bool


@stored("joint-rows")
class JointRows(NamedTuple):
    """Contexts ``[n, D]``, joint actions ``[n, S]``, rewards and weights ``[n]``."""

    context: Floats
    action: Integers
    reward: Floats
    weight: Floats

    def joined(self, other: Self) -> Self:
        """The rows of both."""
        context, action, reward, weight = (
            np.concatenate(pair) for pair in zip(self, other, strict=True)
        )
        return type(self)(context, action, reward, weight)

    def sampled(self, most: int, rng: np.random.Generator) -> Self:
        """At most so many of the rows, which weigh as much as all of them."""
        count = len(self.reward)
        if count <= most:
            return self
        some = rng.permutation(count)[:most]
        weight = self.weight[some] * (self.weight.sum() / self.weight[some].sum())
        return type(self)(self.context[some], self.action[some], self.reward[some], weight)

    def none(self) -> Self:
        """No rows of the same shape."""
        return type(self)(self.context[:0], self.action[:0], self.reward[:0], self.weight[:0])


@stored("slot-belief")
class SlotBelief(NamedTuple):
    """One replica's belief: the expected reward is ``centre`` plus a sum of effects.

    ``coefficients [F]`` are the posterior mean of the effects of ``slot_map`` and ``pool [P, F]``
    posterior draws; None before anything can be told. The rest is remembered only to learn
    further: ``noise [P, F]`` is Σ √w φ ε with a normal ε for each row and draw, by which a draw
    deviates from the mean, ``start [P, F]`` a draw of the effects from a prior of variance 1, and
    ``kept`` the rows from which the map is made anew, all of them as long as it is.
    """

    slot_map: SlotMap | None
    centre: float
    coefficients: Floats | None
    pool: Floats | None
    sums: Sums | None
    noise: Floats | None
    start: Floats | None
    prior: Prior | None
    kept: JointRows
    mapped: int
    fitted: float

    @classmethod
    def unlearned(cls, width: int, slots: int) -> Self:
        """Before any row."""
        nothing = np.zeros(0)
        kept = JointRows(np.zeros((0, width)), np.zeros((0, slots), np.int64), nothing, nothing)
        return cls(None, 0.0, None, None, None, None, None, None, kept, 0, 0.0)

    def learned(self, new: JointRows, settings: SlotSettings, rng: np.random.Generator) -> Self:
        """The belief after more rows."""
        if self.slot_map is not None and self.sums is None:
            raise InputError(
                "this state was stored to decide, without what it needs to learn further: "
                "fit a new one to all rows"
            )
        if self.mapped >= settings.rows:
            return self._added(new, rng)._solved(settings)
        kept = self.kept.joined(new)
        belief = self._replace(kept=kept)
        if np.ptp(kept.reward) == 0:
            return self._replace(kept=kept.sampled(settings.rows, rng))
        if len(kept.reward) < GROWTH * self.mapped:
            return belief._added(new, rng)._solved(settings)
        return belief._mapped(settings, rng)

    def for_deciding(self) -> Self:
        """Without what is remembered only to learn further."""
        return self._replace(sums=None, noise=None, start=None, prior=None, kept=self.kept.none())

    def _mapped(self, settings: SlotSettings, rng: np.random.Generator) -> Self:
        kept = self.kept
        slot_map = SlotMap.of(
            settings.sizes, kept.context, kept.weight, settings.effects, settings.pairs
        )
        width = slot_map.width
        offset = float(np.average(kept.reward, weights=kept.weight))
        belief = self._replace(
            slot_map=slot_map,
            sums=Sums.empty(1, width, offset),
            noise=np.zeros((settings.draws, width)),
            start=rng.standard_normal((settings.draws, width)),
            mapped=len(kept.reward),
            fitted=0.0,
        )
        if belief.mapped >= settings.rows:
            belief = belief._replace(kept=kept.none())
        added = belief._added(kept, rng)
        assert added.sums is not None, "rows were added to it"
        # If rewards differ by rounding alone, there is nothing to learn from them.
        if added.sums.variance == 0:
            return self._replace(kept=kept.sampled(settings.rows, rng))
        return added._solved(settings)

    def _added(self, new: JointRows, rng: np.random.Generator) -> Self:
        assert self.slot_map is not None, "a map comes first"
        assert self.sums is not None, "a map comes first"
        assert self.noise is not None, "a map comes first"
        features = self.slot_map.rows(new.context, new.action)
        relative = new.reward - self.sums.offset
        weighted = features * new.weight[:, None]
        noise = rng.standard_normal((len(self.noise), len(new.reward))) * np.sqrt(new.weight)
        sums = self.sums._replace(
            gram=self.sums.gram + (weighted.T @ features).toarray()[None],
            moment=self.sums.moment + (weighted.T @ relative)[None],
            weight=self.sums.weight + float(new.weight.sum()),
            reward=self.sums.reward + float(new.weight @ relative),
            square=self.sums.square + float(new.weight @ relative**2),
        )
        return self._replace(sums=sums, noise=self.noise + (features.T @ noise.T).T)

    def _solved(self, settings: SlotSettings) -> Self:
        assert self.slot_map is not None, "a map comes first"
        assert self.sums is not None, "a map comes first"
        assert self.noise is not None, "a map comes first"
        assert self.start is not None, "a map comes first"
        sums = self.sums
        centre = sums.offset + sums.reward / sums.weight
        prior = self.prior or Prior.vague(GROUPS, sums.variance)
        due = sums.weight - self.fitted >= PRIOR_SHARE * sums.weight
        steps = (STEPS if self.fitted else FIRST_STEPS) if due else 0
        design = PriorStructure.independent(self.slot_map.groups, 1)
        posterior = fitted(sums, design, prior, centre, steps)
        # Matheron's rule with the noise of the rows themselves: a draw from the prior, corrected by
        # what the rows would have said about it.
        noise = self.noise * posterior.unit / np.sqrt(posterior.prior.noise)
        heard = self.start @ posterior.gram[0] + noise
        deviation = (self.start - heard @ posterior.inverse[0]) * posterior.unit
        coefficients = posterior.coefficients[0]
        return self._replace(
            centre=centre,
            coefficients=coefficients,
            pool=coefficients + settings.width * deviation,
            prior=posterior.prior,
            fitted=sums.weight if due else self.fitted,
        )
