"""The simulation of one policy in one environment, over many replicas."""

import copy
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import as_whole_number, instance_of, whole_number
from submax.core.environment import Environment
from submax.core.errors import ContextIgnoredWarning, InputError
from submax.core.policy import Policy, WrapperPolicy, act_among
from submax.core.problem import CheckedFeedback, ChosenActions, Feedback
from submax.core.spaces import Choices
from submax.simulation.delays import BatchedRewards, Delay, RandomDelay
from submax.simulation.trace import Trace


class Pending:
    """A queue of feedback, oldest first; blocks are split along the axis of decisions."""

    def __init__(self) -> None:
        self._queue: deque[Feedback] = deque()

    def put(self, feedback: Feedback) -> None:
        self._queue.append(feedback)

    def take(self, count: int) -> Feedback | None:
        """Remove and return the oldest ``count`` decisions of every replica; None for none."""
        pieces = []
        while count > 0:
            piece = self._queue.popleft()
            rows = piece.reward.shape[1]
            if rows > count:
                self._queue.appendleft(piece.rows(slice(count, None)))
                piece = piece.rows(slice(count))
            pieces.append(piece)
            count -= rows
        return Feedback.joined(pieces) if pieces else None


class RandomlyPending:
    """Single decisions by the time at which their rewards come back, which is drawn.

    A decision that comes back now in some replicas only is a row of weight 0 in the others.
    """

    def __init__(self, delay: RandomDelay, rng: np.random.Generator) -> None:
        self._delay, self._rng = delay, rng
        self._due: dict[int, list[Feedback]] = {}
        self._now = 0

    def put(self, feedback: Feedback) -> None:
        wait = self._delay.waits(len(feedback.reward), self._rng)
        for after in np.unique(wait).tolist():
            weight: Floats = (wait == after).astype(np.float64)[:, None]
            self._due.setdefault(self._now + after, []).append(feedback._replace(weight=weight))

    def take(self, count: int) -> Feedback | None:
        back = self._due.pop(self._now, None)
        self._now += 1
        return None if back is None else Feedback.joined(back)


RECORDED_TOGETHER = 64
"""Decisions are recorded in blocks of at least this many: to record each single one would take
longer than a fast policy takes to decide."""

Progress: TypeAlias = Callable[[int], None]
"""Called with a number of decisions, over all replicas."""


class Recording:
    """Builds the trace of a simulation, and refuses actions and rewards that do not fit.

    The memory does not grow with the length of the run: at most ``points`` decisions are kept.
    """

    def __init__(
        self,
        environment: Environment[Any],
        policy: Policy[Any],
        replicas: int,
        steps: Integers,
        progress: Progress | None,
    ) -> None:
        self._environment, self._policy, self._progress = environment, policy, progress
        self._space, self._scale = environment.problem.space, environment.problem.scale
        self._replicas = replicas
        shape = (replicas, len(steps))
        actions = np.empty((*shape, self._space.slots), dtype=self._space.dtype)
        self._trace = Trace(steps, actions, np.empty(shape), np.empty(shape), np.empty(shape))
        self._recorded = self._decisions = 0
        self._sums: tuple[Floats, Floats] = (np.zeros((replicas, 1)), np.zeros((replicas, 1)))
        self._blocks: list[tuple[Actions, Floats, Floats]] = []

    def check(self, action: Actions, decisions: int) -> None:
        """Refuse actions outside the space, which would read the arms of another replica."""
        shape, kind = (self._replicas, decisions, self._space.slots), self._space.dtype
        right_type = action.shape == shape and action.dtype == kind
        if not (right_type and self._space.contains(action)):
            raise InputError(
                f"the actions of {self._policy} must be {kind.__name__} numbers of shape "
                f"{shape} in {self._space}, not {action.dtype} numbers of shape {action.shape} "
                f"from {action.min(initial=0)} to {action.max(initial=0)}: correct its act method",
                parameter="policy",
            )

    def add(self, action: Actions, reward: Floats, regret: Floats) -> None:
        """Check rewards, and record a block of decisions, a short one together with later ones."""
        fits = self._scale.contains(reward)
        if not fits.all():
            raise InputError(
                f"{self._environment} gave a reward of {reward[~fits][0]}, which its scale "
                f"{self._scale} does not contain: correct the scale in its problem, or the rewards",
                parameter="environment",
            )
        self._blocks.append((action, reward, regret))
        self._decisions += action.shape[1]
        if self._decisions >= RECORDED_TOGETHER:
            self.complete()

    def complete(self) -> None:
        """Record the decisions that are not recorded yet, and report the progress."""
        if not self._blocks:
            return
        action, reward, regret = (
            parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
            for parts in zip(*self._blocks, strict=True)
        )
        steps, actions, rewards, *sums = self._trace
        count = self._decisions
        begin, end = np.searchsorted(steps, [self._recorded + 1, self._recorded + count + 1])
        kept = steps[begin:end] - self._recorded - 1
        actions[:, begin:end] = action[:, kept]
        rewards[:, begin:end] = reward[:, kept]
        pieces = np.concatenate(([0], kept + 1))
        pieces = pieces[pieces < count]
        for values, before, added in zip(sums, self._sums, (reward, regret), strict=True):
            up_to = before + np.add.reduceat(added, pieces, axis=1).cumsum(axis=1)
            values[:, begin:end] = up_to[:, : len(kept)]
            before[:] = up_to[:, -1:]
        self._recorded += count
        self._blocks, self._decisions = [], 0
        if self._progress is not None:
            self._progress(count * self._replicas)

    def trace(self) -> Trace:
        """Return the trace of all decisions; refuse expected rewards that are not finite."""
        self.complete()
        if not np.isfinite(self._trace.final_regret).all():
            raise InputError(
                f"{self._environment} gave an expected reward that is not a finite number: "
                "correct mean_reward and best_reward",
                parameter="environment",
            )
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


class SimulatedWorld:
    """An environment, the hidden truth that was drawn from it, and its random streams.

    ``random`` are the streams of its truth, its contexts, and its rewards.

    If the environment does not drift, a whole block of decisions is one call; without contexts,
    the best expected reward is computed once for the whole run. If it drifts, the truth moves on
    after every single decision, and all random numbers are drawn decision by decision, so the
    same seed gives the same truth and the same contexts for every policy and every delay.
    """

    def __init__(
        self, environment: Environment[Any], replicas: int, random: Sequence[np.random.Generator]
    ) -> None:
        self.environment, self.replicas = environment, replicas
        self._truth, self._contexts, self._rewards = random
        self._world = environment.reset(replicas, self._truth)
        self._drifts = environment.drifts
        self._has_contexts = environment.problem.context_width > 0
        self._own_regret = type(environment).regret is not Environment.regret
        self._best: Floats | None = None

    def contexts(self, count: int) -> Floats:
        """Return the contexts of the next ``count`` decisions, ``[R, count, D]``."""
        environment = self.environment
        if not self._has_contexts:
            return np.zeros((self.replicas, count, 0))
        if count == 1 or not self._drifts:
            return environment.contexts(self._world, count, self._contexts)
        # The contexts are needed before the actions. So the world is moved on twice: here with a
        # copy of its random stream, and again when the actions are known.
        world, truth, drawn = self._world, copy.deepcopy(self._truth), []
        for _ in range(count):
            drawn.append(environment.contexts(world, 1, self._contexts))
            world = environment.advance(world, 1, truth)
        return np.concatenate(drawn, axis=1)

    def step(self, context: Floats, action: Actions) -> tuple[Floats, Floats]:
        """Take decisions, and move on; return their rewards and expected regrets, ``[R, n]``."""
        count = action.shape[1]
        if count == 1 or not self._drifts:
            return self._step(context, action)
        parts = [self._step(context[:, [row]], action[:, [row]]) for row in range(count)]
        reward, regret = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        return reward, regret

    def _step(self, context: Floats, action: Actions) -> tuple[Floats, Floats]:
        environment = self.environment
        reward, mean = environment.outcome(self._world, context, action, self._rewards)
        if self._own_regret:
            regret = environment.regret(self._world, context, action)
        else:
            regret = self._best_reward(context) - mean
        self._world = environment.advance(self._world, context.shape[1], self._truth)
        return reward, regret

    def _best_reward(self, context: Floats) -> Floats:
        if self._has_contexts or self._drifts:
            return self.environment.best_reward(self._world, context)
        if self._best is None:
            self._best = self.environment.best_reward(self._world, context[:, :1]).copy()
        return self._best


class Timed(WrapperPolicy):
    """Another policy, with the seconds that its ``act`` and its ``update`` have taken so far."""

    def __init__(self, policy: Policy[Any]) -> None:
        self.policy = policy
        self.deciding = 0.0
        self.learning = 0.0

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
        begin = time.perf_counter()
        decision = self.policy.act(state, context, rng)
        self.deciding += time.perf_counter() - begin
        return decision

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        begin = time.perf_counter()
        after = self.policy.update(state, feedback, rng)
        self.learning += time.perf_counter() - begin
        return after

    def __repr__(self) -> str:
        return repr(self.policy)


def simulate(
    environment: Environment[Any],
    policy: Policy[Any],
    *,
    observations: int,
    replicas: int = 100,
    delay: Delay = BatchedRewards(1),
    seed: int | Sequence[int] = 0,
    points: int | None = 500,
    progress: Progress | None = None,
) -> Trace:
    """Run ``policy`` for ``observations`` decisions in ``replicas`` independent worlds.

    Worlds, contexts, rewards and the policy each have a random stream of their own, so two
    policies with the same seed meet the same worlds. A truth that drifts moves with every decision
    and is the same for all policies and delays. Regret is the best expected reward minus the
    expected reward of the action taken, summed over decisions. The trace keeps at most ``points``
    decisions, or all of them if ``points`` is None. While the simulation runs, ``progress`` is
    called from time to time with the number of decisions since the last call, over all replicas.

    >>> from submax.environments.arms import Bernoulli
    >>> from submax.policies.reward_conditioned import RewardConditioned
    >>> trace = simulate(
    ...     Bernoulli(10, 1, 9), RewardConditioned(), observations=1000, delay=BatchedRewards(100),
    ...     replicas=20, seed=1,
    ... )
    >>> trace.accumulated_regret.shape
    (20, 500)
    """
    instance_of("environment", environment, Environment, "Bernoulli(10)")
    instance_of("policy", policy, Policy, "make_policy('rcp-submax')")
    instance_of("delay", delay, Delay, "BatchedRewards(100)")
    observations = as_whole_number("observations", observations, at_least=1)
    most = environment.most_decisions
    if most is not None and observations > most:
        raise InputError(
            f"{environment} allows at most {most} decisions, not {observations}: "
            f"set observations to {most} or fewer",
            parameter="observations",
        )
    replicas = as_whole_number("replicas", replicas, at_least=1)
    points = None if points is None else as_whole_number("points", points, at_least=1)
    *streams, rng, delay_rng = random_streams(seed, 5)
    if ignores_context(environment, policy):
        warnings.warn(
            f"the policy {policy} ignores the context of {environment}: the default, "
            "rcp-adaptive, uses it",
            ContextIgnoredWarning,
            stacklevel=2,
        )
    world = SimulatedWorld(environment, replicas, streams)
    pending: Pending | RandomlyPending = (
        RandomlyPending(delay, delay_rng) if isinstance(delay, RandomDelay) else Pending()
    )
    steps = kept_steps(observations, points)
    recording = Recording(environment, policy, replicas, steps, progress)
    state, first = policy.init(environment.problem, replicas, rng), 0
    for step in delay.schedule(observations):
        context = world.contexts(step.decide)
        action, log_prob = _decided(policy, state, context, environment, first, rng)
        first += step.decide
        recording.check(action, step.decide)
        state = policy.record(state, action)
        reward, regret = world.step(context, action)
        recording.add(action, reward, regret)
        # The recording has checked single decisions.
        kind = CheckedFeedback if step.decide == 1 else Feedback
        pending.put(kind(context, action, reward, log_prob, np.ones(reward.shape)))
        back = pending.take(step.receive)
        if back is not None:
            state = policy.update(state, back, rng)
    return recording.trace()


def random_streams(seed: int | Sequence[int], count: int) -> list[np.random.Generator]:
    """Independent generators of random numbers, for a seed that is checked first."""
    for number in seed if isinstance(seed, Sequence) else [seed]:
        whole_number("seed", number, at_least=0)
    streams = np.random.SeedSequence(seed).spawn(count)
    return [np.random.Generator(np.random.SFC64(stream)) for stream in streams]


def _decided(
    policy: Policy[Any],
    state: Any,
    context: Floats,
    environment: Environment[Any],
    first: int,
    rng: np.random.Generator,
) -> ChosenActions:
    """Decide in every row, among the choices that the environment has for its number."""
    if type(environment).eligible is Environment.eligible:
        return policy.act(state, context, rng)
    replicas, rows, _ = context.shape
    space = environment.problem.space
    action = np.empty((replicas, rows, space.slots), dtype=space.dtype)
    log_prob = np.empty((replicas, rows))
    columns: dict[Choices | None, list[int]] = {}
    for row in range(rows):
        columns.setdefault(environment.eligible(first + row), []).append(row)
    for choices, some in columns.items():
        if choices is None:
            choices = tuple(tuple(range(size)) for size in space.choices)
        action[:, some], log_prob[:, some] = act_among(
            policy, state, context[:, some], choices, rng
        )
    return ChosenActions(action, log_prob)


def ignores_context(environment: Environment[Any], policy: Policy[Any]) -> bool:
    """Whether a policy that learns does not look at the contexts of an environment."""
    learns = policy.traits.learns and not policy.traits.uses_context
    return bool(environment.problem.context_width) and learns
