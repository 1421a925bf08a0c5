"""Simulations of policies that identify the best arm."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import as_whole_number, instance_of, whole_number
from submax.core.contracts.environment import Environment
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError


class Identifying(Protocol):
    """What a policy that identifies the best arm can say about its state."""

    def recommend(self, state: Any) -> Integers:
        """Return the arm that is believed to be the best in each replica."""
        ...

    def stopped(self, state: Any) -> Booleans:
        """Return in which replicas the policy is certain enough."""
        ...


class Identification(NamedTuple):
    """What R replicas found.

    ``decisions [R]`` is after how many decisions each replica was certain, or the budget if it was
    not; ``certain [R]`` says which. ``recommended [R]`` is the arm, and ``simple_regret [R]`` is
    how far its mean reward lies below that of the best arm.
    """

    decisions: Integers
    certain: Booleans
    recommended: Integers
    simple_regret: Floats

    @property
    def wrong(self) -> float:
        """The share of replicas whose recommended arm is not the best."""
        return float((self.simple_regret > 0).mean())


def identify(
    environment: Environment[Any],
    policy: Policy[Any],
    *,
    observations: int,
    replicas: int = 100,
    seed: int | Sequence[int] = 0,
) -> Identification:
    """Let a policy look for the best arm until it is certain, for at most ``observations``.

    Decisions are taken one by one. A replica that is certain goes on, because the others do, but
    its recommendation is that of the moment when it was certain.

    >>> from submax import Bernoulli, make_policy
    >>> found = identify(
    ...     Bernoulli.of([0.9, 0.1]), make_policy("track-and-stop"), observations=500, replicas=5
    ... )
    >>> found.recommended.tolist()
    [0, 0, 0, 0, 0]
    """
    instance_of("environment", environment, Environment, "Bernoulli(10)")
    instance_of("policy", policy, Policy, "make_policy('track-and-stop')")
    if not hasattr(policy, "recommend") or not hasattr(policy, "stopped"):
        raise InputError(
            f"{policy} recommends no arm: take a policy that identifies the best arm, such as "
            "track-and-stop, top-two-thompson or successive-elimination"
        )
    if environment.problem.context_width or environment.drifts:
        raise InputError(f"{environment} has no single best arm: take one without context or drift")
    count = as_whole_number("observations", observations, at_least=1)
    replicas = as_whole_number("replicas", replicas, at_least=1)
    for number in seed if isinstance(seed, Sequence) else [seed]:
        whole_number("seed", number, at_least=0)
    return _run(environment, policy, count, replicas, seed)


def _run(
    environment: Environment[Any],
    policy: Any,
    count: int,
    replicas: int,
    seed: int | Sequence[int],
) -> Identification:
    world_rng, reward_rng, policy_rng = (
        np.random.Generator(np.random.SFC64(stream))
        for stream in np.random.SeedSequence(seed).spawn(3)
    )
    world = environment.reset(replicas, world_rng)
    state = policy.init(environment.problem, replicas, policy_rng)
    context, weight = np.zeros((replicas, 1, 0)), np.ones((replicas, 1))
    decisions, certain = np.full(replicas, count), np.zeros(replicas, dtype=bool)
    recommended = np.zeros(replicas, dtype=np.int64)
    for decision in range(1, count + 1):
        action, log_prob = policy.act(state, context, policy_rng)
        reward = environment.reward(world, context, action, reward_rng)
        state = policy.record(state, action)
        feedback = Feedback(context, action, reward, log_prob, weight)
        state = policy.update(state, feedback, policy_rng)
        now = policy.stopped(state) & ~certain
        if now.any():
            decisions[now], recommended[now] = decision, policy.recommend(state)[now]
            certain |= now
        if certain.all():
            break
    recommended = np.where(certain, recommended, policy.recommend(state))
    chosen = environment.problem.space.action(recommended[:, None])
    regret = environment.regret(world, context, chosen)
    return Identification(decisions, certain, recommended, regret[:, 0])
