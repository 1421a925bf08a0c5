"""The bandit in memory learns exactly what the rule for single acts says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maturing_rule import PARTS, by_the_rule

import submax
from submax.core.errors import ConflictError, NotFoundError
from submax.policies.epsilon_greedy import Random
from submax.testing import ManualClock

LIMIT = 50.0
IDENTIFIERS = st.sampled_from([f"d{number}" for number in range(4)])
ACTS = st.one_of(
    st.tuples(st.just("decide"), IDENTIFIERS, st.booleans(), st.none()),
    st.tuples(st.just("reward"), IDENTIFIERS, st.sampled_from([*PARTS]), st.integers(0, 1)),
    st.tuples(st.just("activate"), IDENTIFIERS, st.none(), st.none()),
)
STEPS = st.sampled_from([0.0, 1.0, 20.0, LIMIT, -30.0])
KINDS = {
    "a wait": {"reward_wait": LIMIT, "combine": "sum", "rewards": "counts"},
    "the last of a wait": {"reward_wait": LIMIT},
    "at the reward": {},
    "a limit": {"no_reward_after": LIMIT},
    "no default": {"no_reward_after": LIMIT, "default_reward": None},
    "parts": {"rewards": PARTS, "no_reward_after": LIMIT},
    "parts and a wait": {"rewards": PARTS, "reward_wait": LIMIT, "combine": "last"},
}


class Recording(Random):
    """Decides at random, and remembers the rows that it is given."""

    def __init__(self):
        object.__setattr__(self, "rows", [])

    def update(self, state, feedback, rng):
        self.rows.extend(zip(feedback.action[0].tolist(), feedback.reward[0], strict=True))
        return super().update(state, feedback, rng)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(st.lists(st.tuples(STEPS, ACTS), max_size=25))
def test_what_is_learned_is_what_the_rule_says(kind, history):
    clock, policy, acts, now, decided, given_before = ManualClock(), Recording(), [], 0.0, {}, {}
    bandit = submax.Bandit(["A", "B"], policy=policy, seed=0, clock=clock, **KINDS[kind])
    has_parts = bandit.settings.reward_parts is not None
    for step, (verb, one, word, value) in history:
        clock.now += step
        # Time does not go back in a bandit.
        now += max(step, 0.0)
        details = None
        try:
            if verb == "decide":
                made = bandit.decide(id=one, activate=word)
                if decided.setdefault(one, made) is not made:
                    continue
                activated = 0.0 if word else None
                details = {"activated": activated, "assignment": None, "paused": False}
            elif verb == "activate":
                bandit.activate(one)
            else:
                bandit.reward(one, value, **{"name" if has_parts else "key": word})
                given_before.setdefault((one, word), value)
                details = word, float(value), {word: float(value)} if has_parts else None
        except ConflictError:
            assert given_before[one, word] != value
        except NotFoundError:
            assert one not in decided
        else:
            acts.append((verb, one, now, details))
    clock.now += 1.0
    bandit.refit()
    found = by_the_rule(bandit.settings, acts, now + 1.0)
    matured = sorted(
        (one for one in found if one[3] != "pending"), key=lambda one: (one[0], one[5])
    )
    rows = [(decided[one].action, reward) for _, _, one, status, reward, _ in matured
            if status == "learned"]  # fmt: skip
    assert [(bandit.menu.action(action), reward) for action, reward in policy.rows] == rows
    assert bandit.counts().get("matured", 0) == len(matured)
