"""The bandit in memory learns exactly what a short loop over the same calls says."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import submax
from submax.core.errors import ConflictError, NotFoundError
from submax.policies.epsilon_greedy import Random
from submax.testing import ManualClock

LIMIT = 50.0
NAMES = {"click": 1.0, "order": 20.0}
IDENTIFIERS = st.sampled_from([f"d{number}" for number in range(4)])
ACTS = st.one_of(
    st.tuples(st.just("decide"), IDENTIFIERS, st.booleans(), st.none()),
    st.tuples(st.just("reward"), IDENTIFIERS, st.sampled_from([*NAMES]), st.integers(0, 1)),
    st.tuples(st.just("activate"), IDENTIFIERS, st.none(), st.none()),
)
STEPS = st.sampled_from([0.0, 1.0, 20.0, LIMIT, -30.0])
KINDS = {
    "a wait": {"reward_wait": LIMIT, "combine": "sum", "rewards": "counts"},
    "the last of a wait": {"reward_wait": LIMIT},
    "at the reward": {},
    "a limit": {"no_reward_after": LIMIT},
    "no default": {"no_reward_after": LIMIT, "default_reward": None},
    "parts": {"rewards": NAMES, "no_reward_after": LIMIT},
    "parts and a wait": {"rewards": NAMES, "reward_wait": LIMIT, "combine": "last"},
}
JOIN = {"sum": lambda one, two: one + two, "first": lambda one, _: one, "last": lambda _, two: two}


class Recording(Random):
    """Decides at random, and remembers the rows that it is given."""

    def __init__(self):
        object.__setattr__(self, "rows", [])

    def update(self, state, feedback, rng):
        self.rows.extend(zip(feedback.action[0].tolist(), feedback.reward[0], strict=True))
        return super().update(state, feedback, rng)


class Loop:
    """Everything that came, in the order in which it came; rows are computed anew by the rule."""

    def __init__(self, kind):
        self.wait, self.at_reward = LIMIT if len(kind) else math.inf, "reward_wait" not in kind
        self.join = JOIN[kind.get("combine", "first" if self.at_reward else "last")]
        self.parts, self.default = kind.get("rewards") == NAMES, kind.get("default_reward", 0.0)
        self.made, self.given, self.rows, self.now = {}, {}, [], 0.0

    def tick(self, step):
        self.now += max(step, 0.0)
        for one, (at, _) in self.made.items():
            if self.now - at >= self.wait and one not in [row[0] for row in self.rows]:
                self.close(one)

    def close(self, one):
        came = [(key, value) for (owner, key), value in self.given.items() if owner == one]
        reward = None
        for key, value in came:
            value = NAMES[key] * value if self.parts else value
            join = (lambda x, y: x + y) if self.parts else self.join
            reward = value if reward is None else join(reward, value)
        reward = self.default if reward is None and self.made[one][1] else reward
        self.rows.append((one, reward if self.made[one][1] else None))

    def close_if_complete(self, one):
        came = sum(owner == one for owner, _ in self.given)
        complete = came == len(NAMES) or (came and not self.parts)
        is_open = one in self.made and self.made[one][1] and one not in self.closed
        if self.at_reward and complete and is_open:
            self.close(one)

    @property
    def closed(self):
        return [one for one, _ in self.rows]

    def act(self, verb, one, word, value):
        if verb == "decide" and one not in self.made:
            self.made[one] = [self.now, word]
        elif verb == "reward" and one in self.made and (one, word) not in self.given:
            self.given[one, word] = float(value)
            if one in self.closed:
                return
        elif verb == "activate" and one in self.made and one not in self.closed:
            self.made[one][1] = True
        self.close_if_complete(one)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(st.lists(st.tuples(STEPS, ACTS), max_size=25))
def test_what_is_learned_is_what_the_loop_says(kind, history):
    clock, loop, policy, decided = ManualClock(), Loop(KINDS[kind]), Recording(), {}
    bandit = submax.Bandit(["A", "B"], policy=policy, seed=0, clock=clock, **KINDS[kind])
    for step, (verb, one, word, value) in history:
        clock.now += step
        loop.tick(step)
        before = loop.given.get((one, word))
        try:
            if verb == "decide":
                decided.setdefault(one, bandit.decide(id=one, activate=word))
            elif verb == "activate":
                bandit.activate(one)
            elif loop.parts:
                bandit.reward(one, value, name=word)
            else:
                bandit.reward(one, value, key=word)
        except ConflictError:
            assert before not in (None, float(value))
        except NotFoundError:
            assert one not in loop.made
        loop.act(verb, one, word, value)
    clock.now += 1.0
    loop.tick(1.0)
    bandit.refit()
    rows = [(decided[one].action, reward) for one, reward in loop.rows if reward is not None]
    assert [(bandit.menu.action(action), reward) for action, reward in policy.rows] == rows
    assert bandit.counts().get("matured", 0) == len(loop.rows)
