"""A round at the front door, and the value of a policy on a log, beside other libraries.

Every library decides among three arms and learns from each reward at once, as its documentation
shows. ``front_door.py round_of LIBRARY`` prints the numbers as JSON. This file needs numpy alone,
because it runs in the environments of the libraries.
"""

import json
import random
import sys
from collections.abc import Callable
from time import process_time

import numpy as np

CHANCES, ROUNDS, WARM_UP = (0.1, 0.6, 0.3), 5_000, 100
"""Of each process the first rounds, which import what is needed later, are not timed."""
ROWS, ACTIONS = 100_000, 10
Step = Callable[[], int]
Learn = Callable[[int, float], object]


def submax(policy: str) -> tuple[Step, Learn]:
    import submax as library

    bandit = library.Bandit(["0", "1", "2"], policy=policy, seed=1)
    open_id = ""

    def decide() -> int:
        nonlocal open_id
        decision = bandit.decide()
        open_id = decision.id
        return int(str(decision.action))

    return decide, lambda _, reward: bandit.reward(open_id, reward)


def plain() -> tuple[Step, Learn]:
    rng, counts = random.Random(1), [[1, 1] for _ in CHANCES]

    def decide() -> int:
        drawn = [rng.betavariate(*count) for count in counts]
        return drawn.index(max(drawn))

    def learn(arm: int, reward: float) -> None:
        counts[arm][reward == 0] += 1

    return decide, learn


def river() -> tuple[Step, Learn]:
    from river import bandit, proba

    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(1, 1), seed=1)
    return lambda: policy.pull([0, 1, 2]), lambda arm, reward: policy.update(arm, reward > 0)


def smpybandits() -> tuple[Step, Learn]:
    from SMPyBandits.Policies import Thompson

    policy = Thompson(3)
    policy.startGame()
    return policy.choice, policy.getReward


def mabwiser() -> tuple[Step, Learn]:
    from mabwiser.mab import MAB, LearningPolicy

    policy = MAB([0, 1, 2], LearningPolicy.ThompsonSampling(), seed=1)
    policy.fit([0, 1, 2], [0, 0, 0])
    return policy.predict, lambda arm, reward: policy.partial_fit([arm], [reward])


def vowpalwabbit() -> tuple[Step, Learn]:
    from vowpalwabbit import Workspace

    policy = Workspace("--cb_explore 3 --epsilon 0.1 --quiet")
    rng, chance = np.random.default_rng(1), [0.0]

    def decide() -> int:
        probabilities = np.array(policy.predict("| constant"))
        arm = int(rng.choice(3, p=probabilities / probabilities.sum()))
        chance[0] = probabilities[arm]
        return arm

    return decide, lambda arm, reward: policy.learn(f"{arm + 1}:{-reward}:{chance[0]} | constant")


LIBRARIES: dict[str, Callable[[], tuple[Step, Learn]]] = {
    "submax": lambda: submax("rcp-adaptive"),
    "submax, Thompson": lambda: submax("thompson-1-1"),
    "plain Python": plain,
    **{one.__name__: one for one in (river, smpybandits, mabwiser, vowpalwabbit)},
}


def round_of(library: str) -> list[float]:
    """Return the processor time of a round in µs, and the mean reward of the rounds."""
    return played(*LIBRARIES[library]())


def played(decide: Step, learn: Learn) -> list[float]:
    """Return the processor time of a round in µs, and the mean reward of the rounds."""
    uniforms, total, begin = np.random.default_rng(0).random(ROUNDS).tolist(), 0.0, 0.0
    for number, uniform in enumerate(uniforms):
        if number == WARM_UP:
            begin = process_time()
        arm = decide()
        reward = float(uniform < CHANCES[arm])
        learn(arm, reward)
        total += reward
    return [1e6 * (process_time() - begin) / (ROUNDS - WARM_UP), total / ROUNDS]


def values_of(library: str) -> list[float]:
    """Return the processor time of evaluating a policy on a log in ms, and its ips and snips."""
    rng = np.random.default_rng(0)
    action, reward = rng.integers(ACTIONS, size=ROWS), (rng.random(ROWS) < 0.1).astype(float)
    propensity, policy = np.full(ROWS, 1 / ACTIONS), rng.dirichlet(np.ones(ACTIONS), size=ROWS)
    if library == "obp":
        from obp import ope

        kinds = ope.InverseProbabilityWeighting(), ope.SelfNormalizedInverseProbabilityWeighting()
        given = {"reward": reward, "action": action, "pscore": propensity}
        begin, dist = process_time(), policy[:, :, None]
        found = [kind.estimate_policy_value(action_dist=dist, **given) for kind in kinds]
        for kind in kinds:
            kind.estimate_interval(action_dist=dist, random_state=1, **given)
    else:
        from submax.evaluation import Log, compare

        begin = process_time()
        log = Log.read({"action": action, "reward": reward, "propensity": propensity})
        names = ["ips", "snips"]
        compared = compare(log, {"policy": policy}, estimators=names)
        found = [compared.find("policy", name).value for name in names]
    return [1e3 * (process_time() - begin), *map(float, found)]


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](sys.argv[2])))
