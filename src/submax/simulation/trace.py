"""The trace of a simulation, and measures of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import probability, whole_number
from submax.core.errors import InputError
from submax.core.numerics import standard_error
from submax.core.optional import require_module
from submax.core.serialization import atomic_write
from submax.core.spaces import Space
from submax.core.summary import Summary, counted, number

SUMMARY_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The rows of a printed trace, as shares of its points: close together at the start, where regret
changes most."""


class Trace(NamedTuple):
    """A simulation of R replicas, kept at P of its decisions; the last decision is always kept.

    ``steps [P]`` are the numbers of the kept decisions, counted from 1. ``actions [R, P, S]`` and
    ``rewards [R, P]`` belong to these decisions. ``accumulated_reward`` and
    ``accumulated_regret``, both ``[R, P]``, are sums over all decisions so far, kept or not.
    """

    steps: Integers
    actions: Actions
    rewards: Floats
    accumulated_reward: Floats
    accumulated_regret: Floats

    @property
    def final_regret(self) -> Floats:
        """Accumulated regret of each replica after the last decision, ``[R]``."""
        return self.accumulated_regret[:, -1]

    @property
    def final_reward(self) -> Floats:
        """Accumulated reward of each replica after the last decision, ``[R]``."""
        return self.accumulated_reward[:, -1]

    def save(self, path: Path | str) -> None:
        """Write the trace into an ``.npz`` file, which `Trace.load` reads."""
        with atomic_write(Path(path)) as file:
            np.savez_compressed(file, **self._asdict())

    @classmethod
    def load(cls, path: Path | str) -> "Trace":
        """Read a trace that ``save`` has written."""
        try:
            with np.load(path, allow_pickle=False) as file:
                return cls(*(file[name] for name in cls._fields))
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                f"{str(path)!r} cannot be read as a trace: {error}; give a file that Trace.save "
                "has written"
            ) from error

    def to_pandas(self) -> Any:
        """Return a table of pandas with a row for each replica and kept decision.

        Its columns are ``replica``, ``step``, ``action`` (``action_0`` and so on for several
        slots), ``reward``, ``accumulated_reward`` and ``accumulated_regret``.
        """
        require_module("to_pandas", "pandas")
        import pandas  # type: ignore[import-untyped,unused-ignore]  # optional

        replicas, points, slots = self.actions.shape
        names = ["action"] if slots == 1 else [f"action_{slot}" for slot in range(slots)]
        columns: dict[str, Any] = {
            "replica": np.repeat(np.arange(replicas), points),
            "step": np.tile(self.steps, replicas),
        }
        columns |= {name: self.actions[..., slot].ravel() for slot, name in enumerate(names)}
        columns["reward"] = self.rewards.ravel()
        columns["accumulated_reward"] = self.accumulated_reward.ravel()
        columns["accumulated_regret"] = self.accumulated_regret.ravel()
        return pandas.DataFrame(columns)

    def to_xarray(self) -> Any:
        """Return a data set of xarray with the dimensions replica, step and slot."""
        require_module("to_xarray", "xarray")
        import xarray  # type: ignore[import-not-found,unused-ignore]  # optional

        plane = ("replica", "step")
        return xarray.Dataset(
            {
                "action": ((*plane, "slot"), self.actions),
                "reward": (plane, self.rewards),
                "accumulated_reward": (plane, self.accumulated_reward),
                "accumulated_regret": (plane, self.accumulated_regret),
            },
            coords={"step": self.steps, "replica": np.arange(len(self.rewards))},
        )

    def __repr__(self) -> str:
        return str(self._summary())

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        replicas, points = self.accumulated_regret.shape
        places = sorted({max(0, round(share * points) - 1) for share in SUMMARY_SHARES})
        rows = [self._row(place) for place in reversed(places)]
        regret, error = rows[0][1:3]
        return Summary(
            [
                f"Trace of {counted(int(self.steps[-1]), 'decision')} in "
                f"{counted(replicas, 'replica')}, {counted(points, 'point')} kept",
                f"final regret {regret} ± {error}, final reward {rows[0][3]} ± {rows[0][4]} "
                "(mean ± standard error)",
            ],
            ["decision", "regret", "± s.e.", "reward", "± s.e."],
            rows[::-1],
            texts=0,
        )

    def _row(self, place: int) -> list[str]:
        cells = [f"{int(self.steps[place]):,}"]
        for values in (self.accumulated_regret[:, place], self.accumulated_reward[:, place]):
            cells += [number(float(values.mean())), number(standard_error(values), 2)]
        return cells


class Recorder:
    """Builds a trace from blocks of decisions; its memory does not grow with the run's length."""

    def __init__(self, observations: int, points: int | None, replicas: int, space: Space) -> None:
        steps = kept_steps(observations, points)
        shape = (replicas, len(steps))
        self._trace = Trace(
            steps,
            np.empty((*shape, space.slots), dtype=space.dtype),
            np.empty(shape),
            np.empty(shape),
            np.empty(shape),
        )
        self._done = 0
        self._reward: Floats = np.zeros((replicas, 1))
        self._regret: Floats = np.zeros((replicas, 1))

    def add(self, actions: Actions, rewards: Floats, regret: Floats) -> None:
        """Record one block of n decisions, each array ``[R, n, ...]``."""
        steps, all_actions, all_rewards, reward_so_far, regret_so_far = self._trace
        count = rewards.shape[1]
        begin, end = np.searchsorted(steps, [self._done + 1, self._done + count + 1])
        kept = steps[begin:end] - self._done - 1
        all_actions[:, begin:end] = actions[:, kept]
        all_rewards[:, begin:end] = rewards[:, kept]
        pieces = np.concatenate(([0], kept + 1))
        pieces = pieces[pieces < count]
        for so_far, before, values in (
            (reward_so_far, self._reward, rewards),
            (regret_so_far, self._regret, regret),
        ):
            sums = before + np.add.reduceat(values, pieces, axis=1).cumsum(axis=1)
            so_far[:, begin:end] = sums[:, : len(kept)]
            before[:] = sums[:, -1:]
        self._done += count

    def trace(self) -> Trace:
        """The trace of all blocks recorded so far."""
        return self._trace


def kept_steps(observations: int, points: int | None) -> Integers:
    """The numbers of at most ``points`` evenly spaced decisions, the last one included.

    If ``points`` is None, all decisions are kept.

    >>> kept_steps(10, 4).tolist()
    [2, 5, 8, 10]
    """
    if points is None or points >= observations:
        return np.arange(1, observations + 1, dtype=np.int64)
    return np.round(np.arange(1, points + 1) * (observations / points)).astype(np.int64)


NO_REGRET = 1e-12
"""Expected regret below this is a rounding error: the decision took a best action."""


class Periods(NamedTuple):
    """A measure of every replica in each of several periods, ``values [R, N]``.

    ``ends [N]`` are the last decisions of the periods.
    """

    ends: Integers
    values: Floats


def regret_per_period(trace: Trace, periods: int = 10) -> Periods:
    """Return the mean regret per decision in each of some periods of equal length.

    >>> from submax import Bernoulli, make_policy, simulate
    >>> trace = simulate(Bernoulli.of([0.9, 0.4]), make_policy("ucb1"), observations=500, seed=1)
    >>> mean = regret_per_period(trace, 5).values.mean(axis=0)
    >>> bool(mean[0] > mean[-1])
    True
    """
    ends = _period_ends(trace, periods)
    total = np.concatenate(
        [np.zeros((len(trace.rewards), 1)), trace.accumulated_regret[:, ends]], axis=1
    )
    lengths = np.diff(np.concatenate([[0], trace.steps[ends]]))
    return Periods(trace.steps[ends], np.diff(total, axis=1) / lengths)


def share_of_best(trace: Trace, periods: int = 10) -> Periods:
    """Return the share of decisions in each period that took a best action.

    The trace must keep every decision: simulate with ``points=None``.
    """
    _check_complete(trace, "share_of_best")
    added = np.diff(trace.accumulated_regret, axis=1, prepend=0.0)
    scale = np.maximum(np.abs(trace.accumulated_regret).max(), 1.0)
    best = (added <= NO_REGRET * scale).astype(np.float64)
    ends = _period_ends(trace, periods)
    begins = np.concatenate([[0], ends[:-1] + 1])
    lengths = np.diff(np.concatenate([[0], trace.steps[ends]]))
    return Periods(trace.steps[ends], np.add.reduceat(best, begins, axis=1) / lengths)


def pulls(trace: Trace, choices: int, slot: int = 0) -> Integers:
    """Return how often each choice of a slot was taken, ``[R, choices]``.

    The trace must keep every decision: simulate with ``points=None``.
    """
    _check_complete(trace, "pulls")
    whole_number("choices", choices, at_least=1)
    taken = trace.actions[..., slot].astype(np.int64)
    return np.stack([(taken == choice).sum(axis=1) for choice in range(choices)], axis=1)


def quantiles(trace: Trace, shares: Sequence[float] = (0.05, 0.5, 0.95)) -> Floats:
    """Return quantiles over replicas of the accumulated regret, ``[len(shares), P]``."""
    for share in shares:
        probability("each of shares", share)
    return np.quantile(trace.accumulated_regret, list(shares), axis=0)


def lai_robbins(means: Sequence[float], steps: Integers) -> Floats:
    """Return Lai and Robbins' lower bound of the regret of Bernoulli arms after these decisions.

    Σ_a (μ* − μ_a) / kl(μ_a, μ*) · ln t: no policy that is good for all means has a regret that
    grows more slowly. It holds as t grows; for small t regret can be lower.

    >>> lai_robbins([0.5, 0.4], np.array([1000])).round(2).tolist()
    [34.31]

    Reference: Lai and Robbins (1985), Asymptotically efficient adaptive allocation rules.
    """
    values = np.array(means, dtype=np.float64)
    for mean in means:
        probability("each of means", mean)
    best = values.max()
    worse = values[values < best]
    divergence = scipy.special.rel_entr(worse, best) + scipy.special.rel_entr(1 - worse, 1 - best)
    constant = float(((best - worse) / divergence).sum())
    return constant * np.log(np.maximum(steps, 1))


def _period_ends(trace: Trace, periods: int) -> Integers:
    """The places of the last kept decision of each period."""
    points = len(trace.steps)
    whole_number("periods", periods, at_least=1, at_most=points)
    wanted = trace.steps[-1] * np.arange(1, periods + 1) / periods
    places: Integers = np.searchsorted(trace.steps, wanted, side="right") - 1
    if len(np.unique(np.maximum(places, 0))) < periods:
        raise InputError(
            f"the trace keeps {points} decisions, too few for {periods} periods: take fewer "
            "periods, or simulate with more points",
            parameter="periods",
        )
    return places


def _check_complete(trace: Trace, who: str) -> None:
    if len(trace.steps) != trace.steps[-1]:
        raise InputError(
            f"{who} needs every decision, and this trace keeps {len(trace.steps)} of "
            f"{trace.steps[-1]}: simulate with points=None"
        )
