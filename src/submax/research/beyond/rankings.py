"""Rankings: what another policy would have earned with lists of items, position by position."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError, one_line
from submax.core.problem import PROBABILITY_TOLERANCE
from submax.evaluation.columns import CheckedColumns, distinct
from submax.evaluation.comparison import SLATE, Comparison, Difference, Estimate, Overview
from submax.evaluation.diagnostics import (
    ChoiceFacts,
    Diagnostics,
    errors_from_one,
    mean_weight_cautions,
    spread_cautions,
)
from submax.evaluation.intervals import INTERVALS, ConfidenceInterval
from submax.evaluation.policies import LOGGING_POLICY
from submax.evaluation.reading import numbered
from submax.evaluation.sources import open_source
from submax.evaluation.sums import Terms, TermSums, Units, mean

# A log of slates ------------------------------------------------------------------------

EMPTY = -1
"""The item at a position that a slate does not have."""
ROLES = ("slate", "position", "action", "reward", "propensity", "cluster")
"""The roles that a column can have; a log needs no cluster."""
MOST_POSITIONS = 1000
"""The longest slate: longer ones are more likely a column that does not hold positions."""


@dataclass(frozen=True, eq=False)
class Slates:
    """n slates with up to K positions; arrays are ``[n, K]``.

    ``item`` is the index, in ``items``, of the item at each position (``EMPTY`` if a slate is
    shorter), and ``reward`` its reward, such as a click. ``propensity`` is the logging policy's
    probability of the item at its position, given the items above it, and ``given`` are those of
    other policies, by name. ``cluster [n]`` is the number of the cluster (such as a user) of each
    slate.
    """

    items: tuple[str, ...]
    item: Integers
    reward: Floats
    propensity: Floats
    given: Mapping[str, Floats] = field(default_factory=dict)
    cluster: Integers | None = None

    def __len__(self) -> int:
        return len(self.item)

    @property
    def positions(self) -> int:
        """The number of positions, K."""
        return int(self.item.shape[1])

    @property
    def filled(self) -> Booleans:
        """Which positions the slates have, ``[n, K]``."""
        return self.item != EMPTY

    @property
    def fingerprint(self) -> str:
        """A hash of the items and rewards of all slates, without propensities."""
        digest = hashlib.sha256(repr(self.items).encode())
        for column in (self.item, self.reward):
            digest.update(repr((column.shape, column.dtype.str)).encode())
            digest.update(np.ascontiguousarray(column).data)
        return digest.hexdigest()

    @classmethod
    def read(
        cls,
        source: Any,
        *,
        columns: Mapping[str, str] | None = None,
        policies: Mapping[str, str] | None = None,
    ) -> Self:
        """Read slates from a file, a data frame or a table, with a row for each position.

        ``columns`` maps roles to names of columns, which by default have the names of their roles:
        slate (the id of a list), position (a whole number, from the top), action (the item),
        reward, propensity (given the items above) and cluster, which may be absent. ``policies``
        maps names of other policies to the column that has their probability of the item, given
        the items above.

        >>> table = {"slate": [1, 1, 2, 2], "position": [1, 2, 1, 2],
        ...          "action": ["A", "B", "B", "A"], "reward": [1, 0, 0, 1],
        ...          "propensity": [0.5, 1.0, 0.5, 1.0]}
        >>> Slates.read(table).item.tolist()
        [[0, 1], [1, 0]]
        """
        opened = open_source(source)
        names = _role_columns(opened.columns, columns or {})
        policies = policies or {}
        for name, column in policies.items():
            one_of(f"column of the policy {name!r}:", column, opened.columns)
        sql = CheckedColumns(opened)
        wanted = {"position": sql.number(names["position"]), "reward": sql.number(names["reward"])}
        fraction = f"{wanted['position']} <> round({wanted['position']})"
        sql.check(names["position"], "is not a whole number", fraction)
        item = sql.name(names["action"], "is missing: an item is needed")
        for role in ("slate", "cluster"):
            if role in names:
                wanted[role] = sql.identifier(names[role])
        for column in {names["propensity"], *policies.values()}:
            wanted[f"of {column}"] = value = sql.number(column)
            low = "<=" if column == names["propensity"] else "<"
            outside = f"{value} {low} 0 or {value} > {1 + PROBABILITY_TOLERANCE!r}"
            sql.check(column, "is not a probability that is possible here", outside)
        facts = sql.facts({"items": distinct(item, "good")})
        items = sql.names(names["action"], item, facts["items"])
        wanted["item"] = sql.code(item, items)
        parts = [rows.columns for rows in sql.batches(wanted)]
        sql.refuse()
        if not parts:
            raise InputError(f"{opened.name} has no rows: give a row for each position of a slate")
        read = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return cls(tuple(items), **_arranged(read, names, policies))


def _role_columns(columns: list[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each role that the table has."""
    for role in named:
        one_of("column role of slates", role, ROLES)
        one_of(f"column for the {role}", named[role], columns)
    found = {role: named.get(role, role) for role in ROLES if role in named or role in columns}
    for role in ROLES[:5]:
        if role not in found:
            raise InputError(
                f"no column is called {role!r}. There are: {', '.join(columns)[:200]}. Say "
                f"which column it is: columns={{{role!r}: NAME}}",
                parameter=role,
            )
    return found


def _arranged(
    read: dict[str, NDArray[Any]], names: Mapping[str, str], policies: Mapping[str, str]
) -> dict[str, Any]:
    """Return the fields of `Slates` as arrays ``[n, K]``, a row for each slate."""
    slate = numbered(read["slate"].view(np.int64))
    position = (read["position"] - read["position"].min()).astype(np.int64)
    positions = int(position.max()) + 1
    if positions > MOST_POSITIONS:
        raise InputError(
            f"the positions in {names['position']!r} are up to {positions} apart, and slates have "
            f"up to {MOST_POSITIONS} positions: name the column that holds the position"
        )
    place = slate * positions + position
    if len(np.unique(place)) < len(place):
        raise InputError(
            "two rows have the same slate and position: check the columns "
            f"{names['slate']!r} and {names['position']!r}",
            parameter="position",
        )
    shape = (int(slate.max()) + 1, positions)

    def arranged(values: NDArray[Any], empty: float) -> Any:
        table = np.full(shape, empty, dtype=values.dtype)
        table.ravel()[place] = values
        return table

    cluster: Integers | None = None
    if "cluster" in read:
        cluster = np.empty(shape[0], dtype=np.int64)
        cluster[slate] = numbered(read["cluster"].view(np.int64))
    return {
        "item": arranged(read["item"], EMPTY),
        "reward": arranged(read["reward"], 0.0),
        "propensity": arranged(read[f"of {names['propensity']}"], 1.0),
        "given": {name: arranged(read[f"of {one}"], 1.0) for name, one in policies.items()},
        "cluster": cluster,
    }


# Policies -------------------------------------------------------------------------------


class RankingPolicy(ABC):
    """Fills the positions of a slate from the top.

    In shapes, n is the number of slates, K that of positions and M that of items.
    """

    @abstractmethod
    def conditional(self, item: Integers) -> Floats:
        """Return the probability of every item at every position, ``[n, K, M]``.

        The probabilities at a position are conditional on the items above it, which are taken from
        the slates ``item [n, K]``.
        """


@dataclass(frozen=True, eq=False)
class PlackettLuce(RankingPolicy):
    """p(a at k | above) = exp(s_a) / Σ exp(s_b) over the items b that are not above.

    s are the ``scores [M]``, or ``[n, M]`` with scores for each slate. Equal scores are uniformly
    random rankings; the larger the differences, the nearer to sorting by score.

    Reference: Plackett (1975), The analysis of permutations.
    """

    scores: Floats

    def __post_init__(self) -> None:
        scores = np.atleast_2d(np.asarray(self.scores, dtype=np.float64))
        if scores.ndim != 2 or not np.isfinite(scores).all() or not scores.size:
            raise InputError(
                f"the scores have the shape {scores.shape}: give finite numbers [items] or "
                "[slates, items]",
                parameter="scores",
            )
        object.__setattr__(self, "scores", scores)

    def conditional(self, item: Integers) -> Floats:
        slates, positions = item.shape
        strength = np.exp(self.scores - self.scores.max(axis=1, keepdims=True))
        left = np.broadcast_to(strength, (slates, self.scores.shape[1])).copy()
        found = np.zeros((slates, positions, left.shape[1]))
        row = np.arange(slates)
        for position in range(positions):
            total = left.sum(axis=1, keepdims=True)
            np.divide(left, total, out=found[:, position], where=total > 0)
            present = item[:, position] != EMPTY
            left[row[present], item[present, position]] = 0.0
        return found


# Evidence -------------------------------------------------------------------------------


class RankingEvidence(NamedTuple):
    """The evidence of n slates of K positions about a policy π; arrays are ``[n, K]``.

    ``weight`` is π(a_k | a_1 … a_k−1) / p(a_k | a_1 … a_k−1), 1 at positions that a slate does not
    have (``filled`` is False). ``predicted`` is q̂_k(a_k), a prediction of Σ_j≥k r_j under π that
    was fitted to other slates, and ``expected`` its expectation under π given the items above; both
    are None if only the probabilities of the logged items are known. ``bounds`` are those of one
    reward, and ``counts [n]`` is the number of equal slates, if it is not one.
    """

    reward: Floats
    filled: Booleans
    weight: Floats
    predicted: Floats | None = None
    expected: Floats | None = None
    bounds: tuple[float, float] | None = None
    counts: Floats | None = None


FOLDS = 3
"""Folds of the cross-fitting: predictions of a slate are fitted to the slates of other folds."""
PRIOR_SLATES = 10.0
"""Slates with the mean of their position that are added to those of each item: a weak prior."""


class SlateEvidence:
    """A log of slates on which ranking policies are evaluated; ``seed`` draws the folds."""

    def __init__(self, slates: Slates, seed: int) -> None:
        self.slates = slates
        self._bounds = (0.0, 1.0) if np.isin(slates.reward, (0, 1)).all() else None
        self._fold = np.random.default_rng(seed).integers(FOLDS, size=len(slates))
        self._tables = np.stack([self._fitted(self._fold != fold) for fold in range(FOLDS)])

    def about_logging_policy(self) -> RankingEvidence:
        """Return the evidence about the policy that wrote the log: all weights are 1."""
        slates, ones = self.slates, np.ones(self.slates.reward.shape)
        return RankingEvidence(slates.reward, slates.filled, ones, bounds=self._bounds)

    def about(self, policy: RankingPolicy | str) -> RankingEvidence:
        """Return the evidence about a policy: an object, or the name of one given by columns."""
        slates = self.slates
        predicted = expected = None
        if isinstance(policy, str):
            one_of("policy given by a column:", policy, slates.given)
            found = slates.given[policy]
        else:
            table = self._conditional(policy)
            item, q = np.maximum(slates.item, 0)[..., None], self._tables[self._fold]
            found = np.take_along_axis(table, item, axis=2)[..., 0]
            predicted = np.take_along_axis(q, item, axis=2)[..., 0]
            expected = (table * q).sum(axis=2)
        weight = np.where(slates.filled, found / slates.propensity, 1.0)
        return RankingEvidence(
            slates.reward, slates.filled, weight, predicted, expected, self._bounds
        )

    def _conditional(self, policy: RankingPolicy) -> Floats:
        """Return the probabilities of all items at each position; refuse those of other slates."""
        slates = self.slates
        wanted = (len(slates), slates.positions, len(slates.items))
        try:
            table = policy.conditional(slates.item)
            reason = f"its probabilities have the shape {table.shape}"
        except (ValueError, IndexError) as error:
            table, reason = np.empty(0), one_line(error)
        if table.shape != wanted:
            raise InputError(
                f"the policy cannot rank {wanted[0]} slates of {wanted[1]} positions and "
                f"{wanted[2]} items ({reason}): give a number for each of the items "
                f"{', '.join(slates.items)[:80]}, in this order",
                parameter="policies",
            )
        return table

    def _fitted(self, which: Booleans) -> Floats:
        """Return q̂, the mean of the rewards from a position on, by position and item, ``[K, M]``.

        Items with few slates are shrunk to the mean of the position.
        """
        slates = self.slates
        item, filled = slates.item[which], slates.filled[which]
        ahead = np.cumsum(slates.reward[which][:, ::-1], axis=1)[:, ::-1]
        table = np.zeros((slates.positions, len(slates.items)))
        for position in np.flatnonzero(filled.any(axis=0)):
            taken = filled[:, position]
            values, chosen = ahead[taken, position], item[taken, position]
            sums = np.bincount(chosen, values, minlength=table.shape[1])
            counts = np.bincount(chosen, minlength=table.shape[1])
            prior = PRIOR_SLATES * values.mean()
            table[position] = (sums + prior) / (counts + PRIOR_SLATES)
        return table


# Estimators -----------------------------------------------------------------------------


@dataclass(frozen=True)
class SlateInversePropensity:
    """V = (1/n) Σ_i w_i Σ_k r_ik, where w_i is the weight of the whole slate, Π_k w_ik.

    Unbiased whatever users do, because it treats a slate as one action. The weights grow
    exponentially with the number of positions.
    """

    short = "sips"
    needs_model = False
    """Whether predictions must be known, for which the policy must be an object."""

    def weights(self, evidence: RankingEvidence) -> Floats:
        """Return the factor of the reward at every position, ``[n, K]``."""
        whole = evidence.weight.prod(axis=1, keepdims=True)
        return np.broadcast_to(whole, evidence.reward.shape)

    def terms(self, evidence: RankingEvidence) -> Terms:
        """Return the terms, one for each slate, whose mean is the estimate."""
        weight = self.weights(evidence)
        low, high = evidence.bounds or (evidence.reward.min(), evidence.reward.max())
        sums = np.where(evidence.filled, weight, 0.0).sum(axis=1)
        ends = np.outer([sums.min(), sums.max(), 0.0], [low, high])
        return Terms(
            (weight * evidence.reward).sum(axis=1),
            reach=(float(ends.min()), float(ends.max())),
            counts=evidence.counts,
        )


@dataclass(frozen=True)
class RewardInteraction(SlateInversePropensity):
    """V = Σ_k Σ_i w_i,1:k r_ik / Σ_i w_i,1:k, with w_i,1:k = Π_j≤k w_ij.

    The reward of a position is weighted by the items down to this position. Consistent if users
    read from the top, so a reward depends on the items above and at its position: the cascade
    model is a special case. The weights of each position are normalized, which reduces the
    variance and adds a bias of order 1/n.

    Reference: McInerney, Brost, Chandar, Mehrotra and Carterette (2020), Counterfactual evaluation
    of slate recommendations with sequential reward interactions.
    """

    short = "rips"

    def weights(self, evidence: RankingEvidence) -> Floats:
        return np.cumprod(evidence.weight, axis=1, dtype=np.float64)

    def terms(self, evidence: RankingEvidence) -> Terms:
        weight, counts = self.weights(evidence), evidence.counts
        averages = np.array([mean(column, counts) for column in weight.T])
        sums = np.array([mean(column, counts) for column in (weight * evidence.reward).T])
        with np.errstate(invalid="ignore", divide="ignore"):
            values: Floats = np.where(averages > 0, sums / averages, np.nan)
            # Ratios are linearized: their terms have the mean v and the variance of the ratio.
            terms = values + weight * (evidence.reward - values) / averages
        return super().terms(evidence)._replace(numerator=terms.sum(axis=1))


@dataclass(frozen=True)
class CascadeDoublyRobust(SlateInversePropensity):
    """V = (1/n) Σ_i Σ_k [w_i,1:k (r_ik − q̂_k(a_ik)) + w_i,1:k−1 E_π[q̂_k(a) | a_i,1:k−1]].

    q̂_k(a) predicts the rewards from position k on. Unbiased under the assumption of ``rips``,
    whatever q̂ is; the better q̂, the smaller the variance.

    Reference: Kiyohara, Saito, Matsuhiro, Narita, Shimizu and Yamamoto (2022), Doubly robust
    off-policy evaluation for ranking policies under the cascade behavior model.
    """

    short = "cascade-dr"
    needs_model = True

    def weights(self, evidence: RankingEvidence) -> Floats:
        return np.cumprod(evidence.weight, axis=1, dtype=np.float64)

    def terms(self, evidence: RankingEvidence) -> Terms:
        assert evidence.predicted is not None
        assert evidence.expected is not None
        weight, plain = self.weights(evidence), super().terms(evidence)
        before = np.concatenate([np.ones((len(weight), 1)), weight[:, :-1]], axis=1)
        of_model = before * evidence.expected - weight * evidence.predicted
        of_model = np.where(evidence.filled, of_model, 0.0).sum(axis=1)
        assert plain.reach is not None
        low, high = plain.reach
        return plain._replace(
            numerator=of_model + plain.numerator,
            reach=(float(of_model.min()) + low, float(of_model.max()) + high),
        )


RANKING_ESTIMATORS: dict[str, SlateInversePropensity] = {
    one.short: one for one in (CascadeDoublyRobust(), RewardInteraction(), SlateInversePropensity())
}
"""Estimators by name, in the order in which they are recommended: fewer assumptions and a smaller
variance come first."""
# Comparison -----------------------------------------------------------------------------


def compare_rankings(
    slates: Slates,
    policies: Mapping[str, RankingPolicy] | None = None,
    *,
    estimators: Sequence[str] = (),
    interval: str = "gamma",
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Return the expected reward per slate of ranking policies, with that of the logging policy.

    ``policies`` are objects such as ``PlackettLuce``; those that the log has as columns are
    evaluated, too. Intervals are by slate, or by cluster. The estimators are ``cascade-dr``, which
    needs an object, ``rips`` and ``sips``; ``seed`` draws the folds of the cross-fitting.

    >>> from submax.research.beyond.rankings import PlackettLuce
    >>> table = {"slate": [1, 1, 2, 2], "position": [1, 2, 1, 2],
    ...          "action": ["A", "B", "B", "A"], "reward": [1, 0, 0, 1],
    ...          "propensity": [0.5, 1.0, 0.5, 1.0]}
    >>> found = compare_rankings(Slates.read(table), {"A first": PlackettLuce(np.array([2.0, 0]))},
    ...                          estimators=["sips"])
    >>> round(found.find("A first", "sips").value, 3)
    1.0
    """
    one_of("interval", interval, INTERVALS)
    for name in estimators:
        one_of("ranking estimator", name, RANKING_ESTIMATORS)
    targets = _targets(slates, policies or {})
    logged = SlateEvidence(slates, seed)
    units = Units.of_rows(len(slates), slates.cluster)
    settings = {"interval": interval, "level": level, "seed": seed}
    notes = [f"{len(slates)} slates of up to {slates.positions} positions"]
    evidence = logged.about_logging_policy()
    based = RANKING_ESTIMATORS["sips"].terms(evidence)
    first = _estimate(LOGGING_POLICY, RANKING_ESTIMATORS["sips"], evidence, units, settings)
    estimates = [first._replace(estimator="mean", cautions=(), recommended=True)]
    differences = list[Difference]()
    for name, target in targets.items():
        evidence, found = logged.about(target), list[Estimate]()
        for short in dict.fromkeys(estimators) or RANKING_ESTIMATORS:
            estimator = RANKING_ESTIMATORS[short]
            known = evidence.predicted is not None or not estimator.needs_model
            if not known and estimators:
                raise InputError(
                    f"the estimator {short} needs the probabilities of all items at each position, "
                    f"which are not known for {name!r}: give the policy as an object, or leave the "
                    "estimator out",
                    parameter="estimators",
                )
            if known:
                found.append(_estimate(name, estimator, evidence, units, settings))
            else:
                notes.append(f"{short} is left out: it needs policies as objects")
        best = min(found, key=lambda one: len(one.cautions))
        for one in found:
            marked = one._replace(recommended=one is best)
            estimates.append(marked)
            terms = RANKING_ESTIMATORS[one.estimator].terms(evidence)
            sums = TermSums.of(terms, based, terms.value, units).difference()
            ends = INTERVALS[interval](sums, level)
            of = (name, LOGGING_POLICY, one.estimator, sums.value, ends, sums.error)
            differences.append(Difference(*of, len(slates), level, marked.recommended))
    shown = {"policies": ", ".join(targets), "estimators": ", ".join(estimators) or "all"}
    overview = _overview(slates, {**shown, **settings})
    return Comparison(estimates, list(dict.fromkeys(notes)), level, differences, overview, SLATE)


def _targets(
    slates: Slates, policies: Mapping[str, RankingPolicy]
) -> dict[str, RankingPolicy | str]:
    """Return the policies to evaluate: those of columns, and those that are objects."""
    targets: dict[str, RankingPolicy | str] = {name: name for name in slates.given}
    for name, policy in policies.items():
        if name in targets or name == LOGGING_POLICY:
            raise InputError(
                f"two policies are called {name!r}: rename one",
                parameter="policies",
            )
        targets[name] = policy
    if not targets:
        raise InputError(
            "give at least one policy, as columns (Slates.read(..., policies={'new': "
            "'new_probability'})) or objects (PlackettLuce)",
            parameter="policies",
        )
    return targets


def _estimate(
    name: str,
    estimator: SlateInversePropensity,
    evidence: RankingEvidence,
    units: Units,
    settings: Mapping[str, Any],
) -> Estimate:
    """Return an estimate with its interval, its diagnostics and its cautions."""
    terms = estimator.terms(evidence)
    summed = TermSums.of(terms, None, terms.value, units).estimate()
    around = INTERVALS[settings["interval"]](summed, settings["level"])
    if evidence.bounds is not None:
        low, high = (end * evidence.reward.shape[1] for end in evidence.bounds)
        around = ConfidenceInterval(*np.clip(around, low, high).tolist())
    weight = _slate_weight(estimator, evidence)
    diagnostics = Diagnostics.of_weights(weight, evidence.reward.sum(axis=1))
    value = float(np.clip(terms.value, around.low, around.high))
    z = errors_from_one(
        diagnostics.mean_weight, diagnostics.mean_error, diagnostics.rows, diagnostics.largest
    )
    found = (*spread_cautions(diagnostics, "slates"), *mean_weight_cautions(diagnostics, z, "all"))
    cautions = tuple(caution.sentence for caution in found)
    return Estimate(name, estimator.short, value, around, None, diagnostics, cautions)


def _slate_weight(estimator: SlateInversePropensity, evidence: RankingEvidence) -> Floats:
    """Return one weight for each slate: the mean of the weights of its positions."""
    filled = evidence.filled
    sums = np.where(filled, estimator.weights(evidence), 0.0).sum(axis=1)
    return sums / filled.sum(axis=1)


def _overview(slates: Slates, settings: Mapping[str, Any]) -> Overview:
    """Return the data checks of a log of slates: rewards by slate, by item and by position.

    The propensities of items are not checked: which items could have been in a slate is not known.
    """
    filled = slates.filled
    chosen, rewards = slates.item[filled], slates.reward[filled]
    order = np.argsort(-np.bincount(chosen, minlength=len(slates.items)), kind="stable")
    by_position = enumerate(zip(slates.reward.T, filled.T, strict=True), 1)
    return Overview(
        rows=len(slates),
        learned_rows=0,
        reward_kind="binary" if np.isin(slates.reward, (0, 1)).all() else "continuous",
        rewards=_low_mean_high(slates.reward.sum(axis=1)),
        propensities=_low_mean_high(slates.propensity[filled]),
        estimated=0,
        choices=[
            *(_facts("", slates.items[one], rewards[chosen == one]) for one in order),
            *(
                _facts("position", str(place), column[there])
                for place, (column, there) in by_position
            ),
        ],
        settings=settings,
        digest=slates.fingerprint,
    )


def _facts(slot: str, name: str, rewards: Floats) -> ChoiceFacts:
    average = float(rewards.mean()) if len(rewards) else float("nan")
    return ChoiceFacts(slot, name, len(rewards), average)


def _low_mean_high(values: Floats) -> tuple[float, float, float]:
    return float(values.min()), float(values.mean()), float(values.max())
