"""Features of a joint action in a context for Bayesian regression: effects that add up."""

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy
from numpy.random import Generator

from submax.core.arrays import Floats, Integers
from submax.core.serialization import serializable
from submax.core.spaces import Choices, Slots
from submax.models.regression.bayesian import (
    Prior,
    PriorStructure,
    Sums,
    check_can_learn,
    fitted,
    known,
)
from submax.models.regression.blas import in_one_thread
from submax.models.regression.context_belief import RegressionRows
from submax.models.regression.features import standardization, standardized

CONSTANT, CONTEXT, CHOICE, CHOICE_IN_CONTEXT, PAIR = range(5)
"""The groups of effects; each group has its own prior variance."""
GROUPS = 5


@serializable("slot-map")
class SlotMap(NamedTuple):
    """Effects whose sum is the expected reward of a joint action in a context.

    The effects are, in this order: a constant; each number of the standardized context z; each
    choice of each slot; each choice times each number of z; and, if ``pairs`` is true, each pair of
    choices in two slots, with the later slot fastest. z = (context − ``shift``) · ``scale`` is
    clipped at ±10.
    """

    sizes: tuple[int, ...]
    shift: Floats
    scale: Floats
    pairs: bool

    @classmethod
    def of(
        cls, sizes: tuple[int, ...], context: Floats, weight: Floats, most: int, pairs: bool
    ) -> Self:
        """Return the map for contexts ``[n, D]``; pairs are left out beyond ``most`` effects."""
        shift, scale = standardization(context, weight)
        made = cls(sizes, shift, scale, pairs and len(sizes) > 1)
        return made if made.width <= most else made._replace(pairs=False)

    @property
    def width(self) -> int:
        return self.first_pair + (sum(self.pair_sizes) if self.pairs else 0)

    @property
    def first_choice(self) -> int:
        return 1 + len(self.shift)

    @property
    def first_in_context(self) -> int:
        return self.first_choice + sum(self.sizes)

    @property
    def first_pair(self) -> int:
        """Index of the first effect of a pair, also if there are no pairs."""
        return self.first_in_context + sum(self.sizes) * len(self.shift)

    @property
    def pair_names(self) -> list[tuple[int, int]]:
        return list(itertools.combinations(range(len(self.sizes)), 2))

    @property
    def pair_sizes(self) -> list[int]:
        return [self.sizes[one] * self.sizes[other] for one, other in self.pair_names]

    @property
    def groups(self) -> Integers:
        """The group of each effect, ``[F]``."""
        numbers, choices = len(self.shift), sum(self.sizes)
        pairs = self.width - self.first_pair
        return np.repeat(np.arange(GROUPS), (1, numbers, choices, choices * numbers, pairs))

    def restricted(self, choices: Choices) -> tuple[Self, Integers]:
        """Return the map with these choices alone, and which effects it keeps, ``[F']``."""
        numbers, chosen = len(self.shift), Slots(self.sizes).kept_choices(choices)
        inside = self.first_in_context + chosen[:, None] * numbers + np.arange(numbers)
        kept = [np.arange(self.first_choice), self.first_choice + chosen, inside.ravel()]
        if self.pairs:
            begins = self.first_pair + np.cumsum([0, *self.pair_sizes[:-1]])
            for begin, (one, other) in zip(begins, self.pair_names, strict=True):
                rows, columns = np.array(choices[one]), np.array(choices[other])
                pair = rows[:, None] * self.sizes[other] + columns
                kept.append(begin + pair.ravel())
        return self._replace(sizes=tuple(map(len, choices))), np.concatenate(kept)

    def rows(self, context: Floats, action: Integers) -> Any:
        """Return the features of joint actions ``[n, S]`` as a sparse matrix ``[n, F]``."""
        z, count = standardized(context, self.shift, self.scale), len(action)
        numbers, slots = z.shape[1], action.shape[1]
        choice = action + np.cumsum([0, *self.sizes[:-1]])
        within = self.first_in_context + choice[:, :, None] * numbers + np.arange(numbers)
        columns = [
            np.tile(np.arange(1 + numbers), (count, 1)),
            self.first_choice + choice,
            within.reshape(count, -1),
        ]
        values = [np.ones((count, 1)), z, np.ones((count, slots)), np.tile(z, slots)]
        if self.pairs:
            begin = self.first_pair + np.cumsum([0, *self.pair_sizes[:-1]])
            one, other = np.array(self.pair_names).T
            place = begin + action[:, one] * np.array(self.sizes)[other] + action[:, other]
            columns.append(place)
            values.append(np.ones(place.shape))
        column = np.concatenate(columns, axis=1)
        pointer = np.arange(0, column.size + 1, column.shape[1])
        parts = np.concatenate(values, axis=1).ravel(), column.ravel(), pointer
        return scipy.sparse.csr_array(parts, shape=(count, self.width))

    def choice_effects(self, coefficients: Floats, context: Floats) -> list[Floats]:
        """Return what choices add, for every slot: ``[P, F]``, ``[n, D] -> [n, P, choices]``."""
        draws, numbers = len(coefficients), len(self.shift)
        plain = coefficients[:, self.first_choice : self.first_in_context]
        effects = np.broadcast_to(plain, (len(context), *plain.shape))
        if numbers:
            inside = coefficients[:, self.first_in_context : self.first_pair]
            slopes = inside.reshape(draws * plain.shape[1], numbers)
            in_context = standardized(context, self.shift, self.scale) @ slopes.T
            effects = plain + in_context.reshape(len(context), *plain.shape)
        return np.split(effects, np.cumsum(self.sizes[:-1]), axis=-1)

    def pair_effects(self, coefficients: Floats) -> dict[tuple[int, int], Floats]:
        """Return what each pair of choices adds, ``[P, choices, choices]`` per pair of slots."""
        if not self.pairs:
            return {}
        ends = np.cumsum(self.pair_sizes)[:-1]
        parts = np.split(coefficients[:, self.first_pair :], ends, axis=1)
        sizes = self.sizes
        return {
            (one, two): part.reshape(-1, sizes[one], sizes[two])
            for (one, two), part in zip(self.pair_names, parts, strict=True)
        }


MAP_GROWTH = 1.6
"""A new map is made when the rows have grown by this factor since the last one."""
PRIOR_GROWTH = 0.1
"""The prior is fitted again when the weight of the rows has grown by this share of itself."""
FIRST_STEPS, STEPS = 5, 1
"""Fixed-point steps of fitting the prior: for a new map, and whenever it is fitted again."""


@dataclass(frozen=True)
class SlotSettings:
    """Settings of a belief about slots with these ``sizes``; see `BeliefSettings`.

    With more than ``effects`` effects, those of ``pairs`` of choices are left out.
    """

    sizes: tuple[int, ...]
    effects: int
    rows: int
    draws: int
    width: float
    pairs: bool


@serializable("slot-belief")
class SlotBelief(NamedTuple):
    """The belief of one replica: the expected reward is ``centre`` plus a sum of effects.

    ``coefficients [F]`` are the posterior mean of the effects of ``slot_map``, and ``pool [P, F]``
    are posterior draws of them. Both are None as long as all rewards are equal.

    The other fields are needed only to learn further: ``sums``, ``prior``, ``noise [P, F]`` =
    Σ √w φ ε with a standard normal ε for each row and draw, ``start [P, F]``, draws of the effects
    from a prior of variance 1, and ``kept``, all rows as long as a new map may be chosen from them.
    ``mapped`` is the number of rows when the map was last chosen, and ``fitted`` their weight when
    the prior was last fitted.
    """

    slot_map: SlotMap | None
    centre: float
    coefficients: Floats | None
    pool: Floats | None
    sums: Sums | None
    noise: Floats | None
    start: Floats | None
    prior: Prior | None
    kept: RegressionRows
    mapped: int
    fitted: float

    @classmethod
    def unlearned(cls, width: int, slots: int) -> Self:
        kept = RegressionRows.empty(width, (slots,))
        return cls(None, 0.0, None, None, None, None, None, None, kept, 0, 0.0)

    @in_one_thread
    def learned(self, new: RegressionRows, settings: SlotSettings, rng: Generator) -> Self:
        check_can_learn(self.slot_map, self.sums)
        if self.mapped >= settings.rows:
            return self._added(new, rng)._solved(settings)
        kept = self.kept.joined(new)
        belief = self._replace(kept=kept)
        if np.ptp(kept.reward) == 0:
            return self._replace(kept=_sampled(kept, settings.rows, rng))
        if len(kept.reward) < MAP_GROWTH * self.mapped:
            return belief._added(new, rng)._solved(settings)
        return belief._mapped(settings, rng)

    def restricted(self, choices: Choices) -> Self:
        belief = self.for_deciding()
        if belief.slot_map is None or belief.coefficients is None or belief.pool is None:
            return belief
        slot_map, kept = belief.slot_map.restricted(choices)
        coefficients, pool = belief.coefficients[kept], belief.pool[:, kept]
        return belief._replace(slot_map=slot_map, coefficients=coefficients, pool=pool)

    def for_deciding(self) -> Self:
        nothing: Any = dict.fromkeys(("sums", "noise", "start", "prior"))
        return self._replace(kept=self.kept.taken(slice(0, 0)), **nothing)

    def _mapped(self, settings: SlotSettings, rng: Generator) -> Self:
        kept = self.kept
        most, pairs = settings.effects, settings.pairs
        slot_map = SlotMap.of(settings.sizes, kept.context, kept.weight, most, pairs)
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
            belief = belief._replace(kept=kept.taken(slice(0, 0)))
        added = belief._added(kept, rng)
        # Rewards that are equal except for rounding carry no information.
        if known(added.sums).variance == 0:
            return self._replace(kept=_sampled(kept, settings.rows, rng))
        return added._solved(settings)

    def _added(self, new: RegressionRows, rng: Generator) -> Self:
        sums, before = known(self.sums), known(self.noise)
        features = known(self.slot_map).rows(new.context, new.number)
        relative = new.reward - sums.offset
        weighted = features * new.weight[:, None]
        noise = rng.standard_normal((len(before), len(new.reward))) * np.sqrt(new.weight)
        sums = sums._replace(
            gram=sums.gram + (weighted.T @ features).toarray()[None],
            moment=sums.moment + (weighted.T @ relative)[None],
            weight=sums.weight + float(new.weight.sum()),
            reward=sums.reward + float(new.weight @ relative),
            square=sums.square + float(new.weight @ relative**2),
        )
        return self._replace(sums=sums, noise=before + (features.T @ noise.T).T)

    def _solved(self, settings: SlotSettings) -> Self:
        sums = known(self.sums)
        centre = sums.offset + sums.reward / sums.weight
        prior = self.prior or Prior.vague(GROUPS, sums.variance)
        due = sums.weight - self.fitted >= PRIOR_GROWTH * sums.weight
        steps = (STEPS if self.fitted else FIRST_STEPS) if due else 0
        structure = PriorStructure.independent(known(self.slot_map).groups, 1)
        posterior = fitted(sums, structure, prior, centre, steps)
        covariance = posterior.covariance
        drawn = known(self.start)[:, None], known(self.noise)[:, None]
        deviation = covariance.applied(structure, covariance.draw_responses(structure, *drawn))
        coefficients = posterior.coefficients[0]
        return self._replace(
            centre=centre,
            coefficients=coefficients,
            pool=coefficients + settings.width * covariance.unit * deviation[:, 0],
            prior=posterior.prior,
            fitted=sums.weight if due else self.fitted,
        )


def _sampled(rows: RegressionRows, most: int, rng: Generator) -> RegressionRows:
    """Return at most ``most`` random rows, scaled to weigh as much as all of them."""
    count = len(rows.reward)
    if count <= most:
        return rows
    some = rows.taken(rng.permutation(count)[:most])
    return some.faded(rows.weight.sum() / some.weight.sum())
