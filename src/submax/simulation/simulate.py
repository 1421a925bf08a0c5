"""The simulation of one policy in one environment, over many replicas."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import as_whole_number, instance_of, whole_number
from submax.core.contracts.checked_feedback import CheckedFeedback
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.context_ignored_warning import ContextIgnoredWarning
from submax.core.contracts.eligibility import act_among
from submax.core.contracts.environment import Environment
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError
from submax.core.spaces.space import Choices
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.delay import Delay, Step
from submax.simulation.pending import Pending
from submax.simulation.random_delays.random_delay import RandomDelay
from submax.simulation.running.drifting_world import DriftingWorld
from submax.simulation.running.progress_bar import progress_bar
from submax.simulation.running.progress_tally import Progress, ProgressTally
from submax.simulation.running.recording import Recording
from submax.simulation.running.simulated_world import SimulatedWorld, WorldRandomness
from submax.simulation.running.single_steps import stepper_of, take_single_steps
from submax.simulation.running.still_world import StillWorld
from submax.simulation.running.waiting_rewards import WaitingRewards
from submax.simulation.trace import Trace


def simulate(
    environment: Environment[Any],
    policy: Policy[Any],
    *,
    observations: int,
    replicas: int = 100,
    delay: Delay = BatchFlush(1),
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

    >>> from submax.environments.arms.bernoulli import Bernoulli
    >>> from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
    >>> trace = simulate(
    ...     Bernoulli(10, 1, 9), RewardConditioned(), observations=1000, delay=BatchFlush(100),
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
    if progress is True:
        with progress_bar(type(policy).__name__, observations * replicas) as shown:
            return _simulated(
                environment, policy, observations, replicas, delay, seed, points, shown
            )
    return _simulated(
        environment, policy, observations, replicas, delay, seed, points, progress or None
    )


def _simulated(
    environment: Environment[Any],
    policy: Policy[Any],
    observations: int,
    replicas: int,
    delay: Delay,
    seed: int | Sequence[int],
    points: int | None,
    progress: Progress | None,
) -> Trace:
    *streams, policy_rng, delay_rng = (
        np.random.Generator(np.random.SFC64(stream))
        for stream in np.random.SeedSequence(seed).spawn(5)
    )
    kind = DriftingWorld if environment.drifts else StillWorld
    world = kind(environment, replicas, WorldRandomness(*streams))
    if delay.one_by_one:
        policy = policy.for_single_decisions()
    recording = Recording(environment, policy, replicas, observations, points)
    tally = ProgressTally(progress, replicas, recording)
    stepper = (
        stepper_of(policy, environment.problem, replicas, policy_rng)
        if delay.immediate and not _restricts(environment)
        else None
    )
    try:
        if stepper is not None:
            take_single_steps(stepper, world, recording, observations, policy_rng, tally.add)
        elif isinstance(delay, RandomDelay):
            rngs = policy_rng, delay_rng
            _take_delayed(policy, world, recording, delay, observations, rngs, tally)
        else:
            _take_blocks(policy, world, recording, delay.schedule(observations), policy_rng, tally)
    except Exception:
        # If an action or a reward that was not checked yet caused the error, the check explains it.
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
        reward, regret = world.play(context, action)
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
        reward, regret = world.play(context, action)
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
    instance_of("delay", delay, Delay, "BatchFlush(100)")


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
    facts = policy.facts
    if environment.problem.context_width and facts.learns and not facts.uses_context:
        warnings.warn(
            f"the policy {policy} does not look at the context of {environment}: the default, "
            "rcp-adaptive, does",
            ContextIgnoredWarning,
            stacklevel=3,
        )
