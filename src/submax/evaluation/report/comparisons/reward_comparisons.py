"""Compares policies by several rewards of one log."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from submax.core.errors import InputError
from submax.core.summary import Summary, number
from submax.evaluation.frames import data_frame
from submax.evaluation.logs.log import By, Log
from submax.evaluation.logs.outcomes import Reward
from submax.evaluation.report.candidates import Candidate, checked, named, unseen_rows
from submax.evaluation.report.comparisons.comparison import Comparison, compare
from submax.evaluation.report.learned_targets import learned_target, split_of
from submax.evaluation.targets.fixed_action import with_every_action
from submax.evaluation.targets.given_probabilities import GivenProbabilities
from submax.schema.learned import Learned


class RewardComparisons(NamedTuple):
    """A comparison of the same policies by each reward, by the name of the reward.

    ``notes`` are sentences about which reward policies learned from, and from which rows.
    """

    comparisons: dict[str, Comparison]
    notes: list[str]

    def rows(self) -> list[dict[str, Any]]:
        """Return all estimates as rows of one table, with the reward first."""
        return [
            {"reward": reward, **row}
            for reward, found in self.comparisons.items()
            for row in found.rows()
        ]

    def to_pandas(self) -> Any:
        """Return a data frame of all estimates."""
        return data_frame(self.rows())

    def __repr__(self) -> str:
        return str(self._summary())

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        """Return a table of the recommended estimates, a line for each reward and policy."""
        cells = [
            [
                reward,
                one.policy,
                one.estimator,
                *map(number, (one.value, *one.interval)),
                "!" if one.cautions else "",
            ]
            for reward, found in self.comparisons.items()
            for one in found.recommended()
        ]
        level = next(iter(self.comparisons.values())).level
        sentences = [f"Comparison by {len(self.comparisons)} rewards, {100 * level:g} % intervals"]
        columns = ["reward", "policy", "estimator", "value", "low", "high", "!"]
        return Summary([*sentences, *self.notes[:3]], columns, cells, texts=3)


def compare_rewards(
    log: Log,
    policies: Sequence[Candidate] | Mapping[str, Candidate],
    *,
    combinations: Mapping[str, Mapping[str, float]] | None = None,
    learn_from: str | None = None,
    share: float = 0.5,
    by: By = "time",
    seed: int = 0,
    **options: Any,
) -> RewardComparisons:
    """Return what policies would have earned of each reward of a log.

    The log was read with several columns of rewards. ``combinations`` are further rewards, each a
    weighted sum, such as ``{"profit": {"click": 0.1, "buy": 20}}``. Policies that have to learn do
    so from one reward, ``learn_from`` (by default the first column), on a ``share`` of the rows,
    and are evaluated by all rewards on the other rows. ``options`` are those of ``compare``.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> table = {"action": rng.choice(["A", "B"], 500), "click": rng.integers(2, size=500),
    ...          "buy": rng.integers(2, size=500), "propensity": np.full(500, 0.5)}
    >>> log = Log.read(table, columns={"reward": ["click", "buy"]})
    >>> found = compare_rewards(log, {"even": np.full((500, 2), 0.5)}, estimators=["ips"],
    ...                         combinations={"both": {"click": 1, "buy": 1}})
    >>> [row["reward"] for row in found.rows()]
    ['click', 'click', 'buy', 'buy', 'both', 'both']
    """
    rewards: dict[str, Reward] = {name: name for name in log.outcome_names}
    for name, weights in (combinations or {}).items():
        if name in rewards:
            raise InputError(
                f"the combination {name!r} has the name of a column of rewards, and needs one of "
                "its own: give it another name",
                parameter="combinations",
            )
        rewards[name] = weights
    logs = {name: log.with_reward(one) for name, one in rewards.items()}
    learning = learn_from or next(iter(rewards), "")
    if learning not in logs:
        raise InputError(
            f"learn_from is {learn_from!r}; one of {', '.join(logs) or 'several rewards'} is "
            "allowed: read the log with several columns of rewards, and name one of them",
            parameter="learn_from",
        )
    given = with_every_action(named(policies), log.schema)
    candidates = {name: checked(one, logs[learning]) for name, one in given.items()}
    part = _evaluated_part(logs[learning], candidates, share, by, seed)
    if part.learned_from:
        part.notes.append(
            f"evaluated on {part.log.decisions} rows; policies learned from the reward "
            f"{learning!r} of {part.learned_from} others"
        )
    comparisons = {
        name: compare(part.log.with_reward(one), part.targets, seed=seed, apart=True, **options)
        for name, one in rewards.items()
    }
    return RewardComparisons(comparisons, part.notes)


class _EvaluatedPart(NamedTuple):
    """The rows to evaluate on, policies that have learned, and from how many rows they did."""

    log: Log
    targets: dict[str, Any]
    learned_from: int
    notes: list[str]


def _evaluated_part(
    log: Log, candidates: Mapping[str, Any], share: float, by: By, seed: int
) -> _EvaluatedPart:
    """Let policies learn, and return the rows from which none of them has learned."""
    log, first, numbers = split_of(log, candidates, share, by, seed)
    targets = {name: learned_target(one, log, first, seed) for name, one in candidates.items()}
    unseen, notes = ~first, list[str]()
    for name, candidate in candidates.items():
        if isinstance(candidate, Learned):
            known = unseen_rows(log, candidate)
            if known is None:
                notes.append(
                    f"{name} was learned from another log: whether it learned from some of these "
                    "rows is not known"
                )
            else:
                unseen &= known
    if not unseen.any():
        raise InputError(
            "the policies have learned from all rows of this log, and rows that none of them has "
            "learned from are needed: learn them from a share of the rows",
            parameter="policies",
        )
    kept = numbers[unseen]
    targets = {
        name: one.of_rows(kept) if isinstance(one, GivenProbabilities) else one
        for name, one in targets.items()
    }
    learned_from = log.rows(first).decisions if first.any() else 0
    return _EvaluatedPart(log.rows(unseen), targets, learned_from, notes)
