"""The simulation of one policy in one environment, over many replicas."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import instance_of, whole_number
from submax.core.contracts.environment import Environment
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.delay import Delay
from submax.simulation.pending import Pending
from submax.simulation.trace import Recorder, Trace


def simulate(
    environment: Environment[Any],
    policy: Policy[Any],
    *,
    observations: int,
    replicas: int = 100,
    delay: Delay = BatchFlush(1),
    seed: int | Sequence[int] = 0,
    points: int | None = 500,
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Run ``policy`` for ``observations`` decisions in ``replicas`` independent worlds.

    Worlds, contexts, rewards and the policy each have a random stream of their own, so that two
    policies with the same seed meet the same worlds. Regret is the best expected reward minus the
    expected reward of the action taken, summed over decisions. The trace keeps at most ``points``
    decisions, or all of them if ``points`` is None. After every step of the ``delay``, ``progress``
    is called with the number of decisions and the number of updates of this step, over all
    replicas.

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
    whole_number("observations", observations, at_least=1)
    _check_length(environment, observations)
    whole_number("replicas", replicas, at_least=1)
    if points is not None:
        whole_number("points", points, at_least=1)
    for number in seed if isinstance(seed, Sequence) else [seed]:
        whole_number("seed", number, at_least=0)
    world_rng, context_rng, reward_rng, policy_rng = (
        np.random.Generator(np.random.SFC64(stream))
        for stream in np.random.SeedSequence(seed).spawn(4)
    )
    world = environment.reset(replicas, world_rng)
    problem = environment.problem
    state = policy.init(problem, replicas, policy_rng)
    slots = problem.space.slots
    recorder, pending = Recorder(observations, points, replicas, problem.space), Pending()
    for step in delay.schedule(observations):
        context = environment.contexts(world, step.decide, context_rng)
        action, log_prob = policy.act(state, context, policy_rng)
        _check_action(action, (replicas, step.decide, slots), problem, policy)
        state = policy.record(state, action)
        reward, mean = environment.outcome(world, context, action, reward_rng)
        _check_reward(reward, problem, environment)
        regret = environment.best_reward(world, context) - mean
        recorder.add(action, reward, regret)
        pending.put(Feedback(context, action, reward, log_prob, np.ones(reward.shape)))
        world = environment.advance(world, step.decide, world_rng)
        if step.receive:
            state = policy.update(state, pending.take(step.receive), policy_rng)
        if progress is not None:
            progress(step.decide * replicas, replicas if step.receive else 0)
    trace = recorder.trace()
    if not np.isfinite(trace.final_regret).all():
        raise InputError(
            f"{environment} gave an expected reward that is not a finite number: let mean_reward "
            "and best_reward of this environment return finite numbers"
        )
    return trace


def _check_parts(environment: object, policy: object, delay: object) -> None:
    """Refuse an argument that is not an environment, a policy or a delay."""
    instance_of("environment", environment, Environment, "Bernoulli(10)")
    if isinstance(policy, str):
        raise InputError(
            f"policy must be a Policy, and the name {policy!r} was given: make a policy from a "
            f"name with submax.make_policy({policy!r})"
        )
    instance_of("policy", policy, Policy, "make_policy('rcp-submax')")
    instance_of("delay", delay, Delay, "BatchFlush(100)")


def _check_length(environment: Environment[Any], observations: int) -> None:
    """Refuse more decisions than the environment allows, before the first one is taken."""
    most = environment.most_decisions
    if most is not None and observations > most:
        raise InputError(
            f"{environment} allows at most {most} decisions, not {observations}: "
            f"set observations to {most} or fewer"
        )


def _check_action(
    action: Actions, shape: tuple[int, int, int], problem: Problem, policy: Policy[Any]
) -> None:
    """Refuse actions outside the space, which would read the arms of another replica."""
    fits = action.shape == shape and action.dtype == problem.space.dtype
    if not (fits and problem.space.contains(action)):
        raise InputError(
            f"the actions of {policy} must be {problem.space.dtype.__name__} numbers of shape "
            f"{shape} in {problem.space}, not {action.dtype} numbers of shape {action.shape} from "
            f"{action.min(initial=0)} to {action.max(initial=0)}: correct its act method"
        )


def _check_reward(reward: Floats, problem: Problem, environment: Environment[Any]) -> None:
    """Refuse rewards outside the scale that the environment declares."""
    if not problem.scale.contains(reward).all():
        outside = reward[~problem.scale.contains(reward)][0]
        raise InputError(
            f"{environment} gave a reward of {outside}, which its scale {problem.scale} does not "
            "contain: correct the scale in its problem, or the rewards"
        )
