"""The simulation of one policy in one environment, over many replicas."""

import copy
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import as_whole_number, instance_of, whole_number
from submax.core.environment import Environment
from submax.core.errors import ContextIgnoredWarning, InputError
from submax.core.policy import (
    Policy,
    WrapperPolicy,
    act_among,
)
from submax.core.problem import CheckedFeedback, ChosenActions, Feedback
from submax.core.spaces import Choices
from submax.simulation.delays import BatchedRewards, Delay, RandomDelay, Step
from submax.simulation.trace import Recorder, Trace


class Pending:
    """A queue of feedback, oldest first; blocks are split along the axis of decisions."""

    def __init__(self) -> None:
        self._queue: deque[Feedback] = deque()

    def put(self, feedback: Feedback) -> None:
        """Add the newest decisions, arrays ``[R, n, ...]``."""
        self._queue.append(feedback)

    def take(self, count: int) -> Feedback:
        """Remove and return the oldest ``count`` decisions of every replica."""
        pieces = []
        while count > 0:
            piece = self._queue.popleft()
            rows = piece.reward.shape[1]
            if rows > count:
                self._queue.appendleft(_rows_of(piece, slice(count, None)))
                piece = _rows_of(piece, slice(None, count))
            pieces.append(piece)
            count -= rows
        return joined(pieces)


def _rows_of(feedback: Feedback, rows: slice) -> Feedback:
    parts: Any = (None if part is None else part[:, rows] for part in feedback)
    return type(feedback)(*parts)


def joined(pieces: list[Feedback]) -> Feedback:
    """Return the decisions of all pieces, one after the other.

    What one of the pieces does not have, such as log-probabilities, the result does not have.
    """
    if len(pieces) == 1:
        return pieces[0]
    return type(pieces[0])(*map(_joined_part, zip(*pieces, strict=True)))


def _joined_part(parts: Sequence[Any]) -> Any:
    if any(part is None for part in parts):
        return None
    return np.concatenate(parts, axis=1)


class WaitingRewards:
    """Decisions by the time at which their rewards come back.

    A decision that comes back now in some replicas only is a row of weight 0 in the others.
    """

    def __init__(self) -> None:
        self._due: dict[int, list[Feedback]] = {}
        self._now = 0

    def put(self, feedback: Feedback, wait: Integers) -> None:
        """Add a single decision of each replica, arrays ``[R, 1, ...]``, and its waits ``[R]``."""
        for after in np.unique(wait).tolist():
            weight: Floats = (wait == after).astype(np.float64)[:, None]
            self._due.setdefault(self._now + after, []).append(feedback._replace(weight=weight))

    def take(self) -> Feedback | None:
        """Return the decisions whose rewards come back now, and wait for the next decision."""
        found = self._due.pop(self._now, None)
        self._now += 1
        return None if found is None else joined(found)


SINGLES_TOGETHER = 64
"""Single decisions are checked and recorded in blocks of this many: to do so for each of them would
take longer than a fast policy takes to decide."""


class _Single(NamedTuple):
    action: Actions
    reward: Floats
    regret: Floats


class Recording:
    """Records the decisions of a simulation, and refuses actions and rewards that do not fit."""

    def __init__(
        self,
        environment: Environment[Any],
        policy: Policy[Any],
        replicas: int,
        observations: int,
        points: int | None,
    ) -> None:
        self._environment = environment
        self._policy = policy
        self._problem = environment.problem
        self._slots, self._dtype = self._problem.space.slots, self._problem.space.dtype
        self._replicas = replicas
        self._recorder = Recorder(observations, points, replicas, self._problem.space)
        self._singles: list[_Single] = []
        self._latest: Actions | None = None

    @property
    def complete(self) -> bool:
        """Whether every decision so far is checked and recorded."""
        return not self._singles

    def check(self, action: Actions, decisions: int) -> None:
        """Refuse actions of a wrong shape and, if they are several, those outside the space."""
        fits = action.shape == (self._replicas, decisions, self._slots)
        if not fits or action.dtype != self._dtype:
            self._refuse(action, decisions)
        self._latest = action
        if decisions > 1 and not self._problem.space.contains(action):
            self._refuse(action, decisions)

    def add(self, action: Actions, reward: Floats, regret: Floats) -> None:
        """Record a block of decisions; single decisions are recorded together with later ones."""
        if action.shape[1] == 1:
            self._singles.append(_Single(action, reward, regret))
            if len(self._singles) >= SINGLES_TOGETHER:
                self.complete_singles()
            return
        self.complete_singles()
        self._check_reward(reward)
        self._recorder.add(action, reward, regret)

    def complete_singles(self) -> None:
        """Check and record the single decisions that are not recorded yet."""
        if not self._singles:
            return
        singles, self._singles = self._singles, []
        action = np.concatenate([single.action for single in singles], axis=1)
        if not self._problem.space.contains(action):
            self._refuse(action, 1)
        reward = np.concatenate([single.reward for single in singles], axis=1)
        self._check_reward(reward)
        regret = np.concatenate([single.regret for single in singles], axis=1)
        self._recorder.add_one_by_one(action, reward, regret)

    def explain_error(self) -> None:
        """Raise an InputError if an action or a reward that was not checked yet does not fit."""
        if self._latest is not None and not self._problem.space.contains(self._latest):
            self._refuse(self._latest, self._latest.shape[1])
        self.complete_singles()

    def trace(self) -> Trace:
        """Return the trace of all decisions; refuse expected rewards that are not finite."""
        self.complete_singles()
        trace = self._recorder.trace()
        if not np.isfinite(trace.final_regret).all():
            raise InputError(
                f"{self._environment} gave an expected reward that is not a finite number: let "
                "mean_reward and best_reward of this environment return finite numbers",
                parameter="environment",
            )
        return trace

    def _refuse(self, action: Actions, decisions: int) -> None:
        """Refuse actions outside the space, which would read the arms of another replica."""
        space = self._problem.space
        shape = (self._replicas, decisions, space.slots)
        raise InputError(
            f"the actions of {self._policy} must be {space.dtype.__name__} numbers of shape "
            f"{shape} in {space}, not {action.dtype} numbers of shape {action.shape} from "
            f"{action.min(initial=0)} to {action.max(initial=0)}: correct its act method",
            parameter="policy",
        )

    def _check_reward(self, reward: Floats) -> None:
        """Refuse rewards outside the scale that the environment declares."""
        scale = self._problem.scale
        fits = scale.contains(reward)
        if not fits.all():
            raise InputError(
                f"{self._environment} gave a reward of {reward[~fits][0]}, which its scale {scale} "
                "does not contain: correct the scale in its problem, or the rewards",
                parameter="environment",
            )


Progress: TypeAlias = Callable[[int, int], None]
"""Called with a number of decisions and a number of updates, over all replicas."""


class ProgressTally:
    """Adds up decisions and updates, and reports them whenever the recording is complete."""

    def __init__(self, progress: Progress | None, replicas: int, recording: Recording) -> None:
        self._progress = progress
        self._replicas = replicas
        self._recording = recording
        self._decisions = self._updates = 0

    def add(self, decisions: int, updates: int) -> None:
        """Count decisions and updates of every replica."""
        self._decisions += decisions
        self._updates += updates
        if self._recording.complete:
            self.finish()

    def finish(self) -> None:
        """Report what was not reported yet."""
        if self._progress is not None and self._decisions:
            self._progress(self._decisions * self._replicas, self._updates * self._replicas)
        self._decisions = self._updates = 0


@contextmanager
def progress_bar(name: str, decisions: int) -> Iterator[Progress]:
    """Show a bar while the block runs; yield the function that `simulate` calls.

    ``decisions`` is their number in all replicas.
    """
    # Imported here because most simulations show no bar.
    from rich.console import Console
    from rich.progress import Progress as Bar

    if Console().is_jupyter:
        # In a notebook, the bar of rich needs ipywidgets.
        yield from _printed_progress(name, decisions)
        return
    with Bar() as bar:
        task = bar.add_task(name, total=decisions)
        yield lambda taken, updates: bar.advance(task, taken)


def _printed_progress(name: str, decisions: int) -> Iterator[Progress]:
    """Yield a function that writes the percentage of decisions taken over its last line."""
    done, shown = 0, -1

    def advance(taken: int, updates: int) -> None:
        nonlocal done, shown
        done += taken
        if (percent := 100 * done // decisions) > shown:
            shown = percent
            print(f"\r{name}: {percent} % of {decisions:,} decisions", end="", flush=True)

    yield advance
    print()


class WorldRandomness(NamedTuple):
    """The random streams of an environment: its truth, its contexts, and its rewards."""

    truth: np.random.Generator
    context: np.random.Generator
    reward: np.random.Generator


class SimulatedWorld:
    """An environment, the hidden truth that was drawn from it, and its random streams.

    If the environment does not drift, a whole block of decisions is one call; without contexts,
    the best expected reward is computed once for the whole run. If it drifts, the truth moves on
    after every single decision, and all random numbers are drawn decision by decision, so that the
    same seed gives the same truth and the same contexts for every policy and every delay.
    """

    def __init__(
        self, environment: Environment[Any], replicas: int, random: WorldRandomness
    ) -> None:
        self.environment = environment
        self.replicas = replicas
        self._random = random
        self._world = environment.reset(replicas, random.truth)
        self._drifts = environment.drifts
        self._has_contexts = environment.problem.context_width > 0
        self._own_regret = type(environment).regret is not Environment.regret
        self._empty: dict[int, Floats] = {}
        self._best: Floats | None = None

    def contexts(self, count: int) -> Floats:
        """Return the contexts of the next ``count`` decisions, ``[R, count, D]``."""
        if not self._has_contexts:
            return self._no_contexts(count)
        environment, random = self.environment, self._random
        if count == 1 or not self._drifts:
            return environment.contexts(self._world, count, random.context)
        # The contexts are needed before the actions. So the world is moved on twice: here with a
        # copy of its random stream, and again when the actions are known.
        world, truth = self._world, copy.deepcopy(random.truth)
        drawn = []
        for _ in range(count):
            drawn.append(environment.contexts(world, 1, random.context))
            world = environment.advance(world, 1, truth)
        return np.concatenate(drawn, axis=1)

    def step(self, context: Floats, action: Actions) -> tuple[Floats, Floats]:
        """Take decisions, and move on; return their rewards and expected regrets, ``[R, n]``."""
        count = action.shape[1]
        if count == 1 or not self._drifts:
            return self._step(context, action)
        single = [slice(place, place + 1) for place in range(count)]
        parts = [self._step(context[:, one], action[:, one]) for one in single]
        reward, regret = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        return reward, regret

    def _step(self, context: Floats, action: Actions) -> tuple[Floats, Floats]:
        environment = self.environment
        reward, mean = environment.outcome(self._world, context, action, self._random.reward)
        if self._own_regret:
            regret = environment.regret(self._world, context, action)
        else:
            regret = self._best_reward(context) - mean
        self._world = environment.advance(self._world, context.shape[1], self._random.truth)
        return reward, regret

    def _best_reward(self, context: Floats) -> Floats:
        if self._has_contexts or self._drifts:
            return self.environment.best_reward(self._world, context)
        if self._best is None:
            self._best = self.environment.best_reward(self._world, self._no_contexts(1)).copy()
        return self._best

    def _no_contexts(self, count: int) -> Floats:
        """Contexts without numbers, ``[R, count, 0]``, which are made once."""
        if count not in self._empty:
            self._empty[count] = np.zeros((self.replicas, count, 0))
        return self._empty[count]


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
    progress: Progress | bool | None = None,
) -> Trace:
    """Run ``policy`` for ``observations`` decisions in ``replicas`` independent worlds.

    Worlds, contexts, rewards and the policy each have a random stream of their own, so that two
    policies with the same seed meet the same worlds. A truth that drifts moves with every decision
    and is the same for all policies and delays. Regret is the best expected reward minus the
    expected reward of the action taken, summed over decisions. The trace keeps at most ``points``
    decisions, or all of them if ``points`` is None. While the simulation runs, ``progress`` is
    called from time to time with the number of decisions and the number of updates since the last
    call, over all replicas; True shows a bar in a terminal or a notebook.

    >>> from submax.environments.arms import Bernoulli
    >>> from submax.policies.reward_conditioned import RewardConditioned
    >>> trace = simulate(
    ...     Bernoulli(10, 1, 9), RewardConditioned(), observations=1000, delay=BatchedRewards(100),
    ...     replicas=20, seed=1,
    ... )
    >>> trace.accumulated_regret.shape
    (20, 500)
    """
    _check_parts(environment, policy, delay)
    observations = as_whole_number("observations", observations, at_least=1)
    _check_length(environment, observations)
    replicas = as_whole_number("replicas", replicas, at_least=1)
    points = None if points is None else as_whole_number("points", points, at_least=1)
    for number in seed if isinstance(seed, Sequence) else [seed]:
        whole_number("seed", number, at_least=0)
    _warn_of_ignored_context(environment, policy)
    *streams, policy_rng, delay_rng = (
        np.random.Generator(np.random.SFC64(stream))
        for stream in np.random.SeedSequence(seed).spawn(5)
    )
    world = SimulatedWorld(environment, replicas, WorldRandomness(*streams))
    recording = Recording(environment, policy, replicas, observations, points)
    bar: AbstractContextManager[Progress | None] = nullcontext(None)
    if progress is True:
        bar = progress_bar(type(policy).__name__, observations * replicas)
    elif progress:
        bar = nullcontext(progress)
    with bar as report:
        tally = ProgressTally(report, replicas, recording)
        try:
            if isinstance(delay, RandomDelay):
                rngs = policy_rng, delay_rng
                _take_delayed(policy, world, recording, delay, observations, rngs, tally)
            else:
                schedule = delay.schedule(observations)
                _take_blocks(policy, world, recording, schedule, policy_rng, tally)
        except Exception:
            # The check explains the error if an action or reward not checked yet caused it.
            recording.explain_error()
            raise
        trace = recording.trace()
        tally.finish()
    return trace


def _take_blocks(
    policy: Policy[Any],
    world: SimulatedWorld,
    recording: Recording,
    schedule: Iterable[Step],
    rng: np.random.Generator,
    tally: ProgressTally,
) -> None:
    """Take the decisions of every step of the schedule together, then learn what comes back."""
    state, pending = policy.init(world.environment.problem, world.replicas, rng), Pending()
    weights: dict[int, Floats] = {}
    first = 0
    for step in schedule:
        context = world.contexts(step.decide)
        action, log_prob = _decided(policy, state, context, world.environment, first, rng)
        first += step.decide
        recording.check(action, step.decide)
        state = policy.record(state, action)
        reward, regret = world.step(context, action)
        recording.add(action, reward, regret)
        if step.decide not in weights:
            weights[step.decide] = np.ones(reward.shape)
        # The recording checks single decisions together.
        kind = CheckedFeedback if step.decide == 1 else Feedback
        pending.put(kind(context, action, reward, log_prob, weights[step.decide]))
        if step.receive:
            state = policy.update(state, pending.take(step.receive), rng)
        tally.add(step.decide, 1 if step.receive else 0)


def _take_delayed(
    policy: Policy[Any],
    world: SimulatedWorld,
    recording: Recording,
    delay: RandomDelay,
    observations: int,
    rngs: tuple[np.random.Generator, np.random.Generator],
    tally: ProgressTally,
) -> None:
    """Take single decisions, whose rewards come back after random times, or never.

    ``rngs`` are the random streams of the policy and of the delay.
    """
    rng, delay_rng = rngs
    space, waiting = world.environment.problem.space, WaitingRewards()
    state = policy.init(world.environment.problem, world.replicas, rng)
    weight = np.ones((world.replicas, 1))
    for number in range(observations):
        context = world.contexts(1)
        action, log_prob = _decided(policy, state, context, world.environment, number, rng)
        recording.check(action, 1)
        state = policy.record(state, action)
        reward, regret = world.step(context, action)
        recording.add(action, reward, regret)
        feedback = CheckedFeedback(context, action, reward, log_prob, weight)
        waiting.put(feedback, delay.waits(space.index(action)[:, 0], delay_rng))
        back = waiting.take()
        if back is not None:
            state = policy.update(state, back, rng)
        tally.add(1, 0 if back is None else 1)


def _decided(
    policy: Policy[Any],
    state: Any,
    context: Floats,
    environment: Environment[Any],
    first: int,
    rng: np.random.Generator,
) -> ChosenActions:
    """Decide in every row, among the choices that the environment has for its number.

    ``first`` is the number of the first row.
    """
    if not _restricts(environment):
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


def _restricts(environment: Environment[Any]) -> bool:
    """Return whether some decisions may have fewer choices than others."""
    return type(environment).eligible is not Environment.eligible


def _check_parts(environment: object, policy: object, delay: object) -> None:
    """Refuse an argument that is not an environment, a policy or a delay."""
    instance_of("environment", environment, Environment, "Bernoulli(10)")
    if isinstance(policy, str):
        raise InputError(
            f"policy must be a Policy, and the name {policy!r} was given: make a policy from a "
            f"name with submax.make_policy({policy!r})",
            parameter="policy",
        )
    instance_of("policy", policy, Policy, "make_policy('rcp-submax')")
    instance_of("delay", delay, Delay, "BatchedRewards(100)")


def _check_length(environment: Environment[Any], observations: int) -> None:
    """Refuse more decisions than the environment allows, before the first one is taken."""
    most = environment.most_decisions
    if most is not None and observations > most:
        raise InputError(
            f"{environment} allows at most {most} decisions, not {observations}: "
            f"set observations to {most} or fewer",
            parameter="observations",
        )


def _warn_of_ignored_context(environment: Environment[Any], policy: Policy[Any]) -> None:
    facts = policy.traits
    if environment.problem.context_width and facts.learns and not facts.uses_context:
        warnings.warn(
            f"the policy {policy} does not look at the context of {environment}: the default, "
            "rcp-adaptive, does",
            ContextIgnoredWarning,
            stacklevel=3,
        )
