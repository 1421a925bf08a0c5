import pytest
from refusals import raises_code

from submax.estimators.counting import Counting
from submax.policies import make_policy, presets
from submax.policies.classic.thompson import Thompson
from submax.policies.classic.ucb1 import UCB1
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.strategies.clipped import Clipped
from submax.strategies.iterated import Iterated
from submax.strategies.submax import SubMax
from submax.strategies.target import Target


def test_every_preset_is_found_by_its_name():
    """Most are found by the name of their file, without the others."""
    assert {name: make_policy(name) for name in presets()} == presets()


def test_the_policies_of_the_paper_have_their_names():
    assert make_policy("rcp-submax") == RewardConditioned(Counting(1.0), SubMax())
    assert make_policy("rcp-iterated-2") == RewardConditioned(Counting(1.0), Iterated(2))
    assert make_policy("thompson-1-99") == Thompson(1.0, 99.0)
    assert make_policy("ucb1-pending") == UCB1(pending=True)
    assert {"epsilon-greedy-0.01", "epsilon-greedy-0.2", "random", "gradient"} <= set(presets())


def test_tables_are_built_with_their_parts():
    made = make_policy(
        {
            "kind": "reward-conditioned",
            "estimator": {"kind": "counting", "smoothing": 2},
            "strategy": {"kind": "clipped", "weight": 8},
        }
    )
    assert made == RewardConditioned(Counting(2.0), Clipped(8.0))
    listed = make_policy(
        {"kind": "reward-conditioned", "strategy": {"kind": "target", "distribution": [0, 1.0]}}
    )
    assert listed == RewardConditioned(Counting(), Target((0.0, 1.0)))
    short = make_policy({"kind": "reward-conditioned", "strategy": "iterated"})
    assert short == RewardConditioned(Counting(), Iterated())


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ("rcp-submx", r"unknown policy 'rcp-submx': did you mean 'rcp-submax', "),
        ("nothing like it", "'nothing like it': allowed: one of .* which `submax policies` lists$"),
        (
            "thompsn",
            r"did you mean 'thompson-1-9', 'thompson-1-1' or 'thompson-1-99'\? allowed: one",
        ),
        (
            "epsilon-greedy",
            r"is a kind .* 'epsilon-greedy-0.2', .* table, \{'kind': 'epsilon-greedy', …\}$",
        ),
        ({"kind": "zzz"}, r"allowed: one of \d+, whose classes dir\(submax.policies\) lists$"),
        (None, "a policy is a name or a table with a 'kind', not None"),
        (7, "a policy is a name or a table with a 'kind', not 7"),
        ({}, "a policy needs a 'kind', one of: .*thompson"),
        ({"alpha": 1.0}, "a policy needs a 'kind'"),
        ({"kind": 3}, "a policy needs a 'kind'"),
        ({"kind": "thomson"}, r"unknown policy 'thomson': did you mean 'thompson', "),
        ({"kind": "thompson", "alfa": 1}, r"'alfa': did you mean 'alpha'\?"),
        ({"kind": "thompson", "alpha": "1"}, "alpha of policy 'thompson' must be of type float"),
        ({"kind": "thompson", "alpha": True}, "alpha of policy 'thompson' must be of type float"),
        ({"kind": "thompson", "alpha": 0}, "alpha must be a finite number, at least 0.05, not 0.0"),
        (
            {"kind": "thompson", "alpha": float("nan")},
            "alpha must be a finite number, at least 0.05",
        ),
        ({"kind": "ucb1", "pending": 1}, "pending of policy 'ucb1' must be of type bool, not 1"),
        ({"kind": "epsilon-greedy", "epsilon": 2}, "epsilon must be a number between 0 and 1"),
        ({"kind": "random", "seed": 3}, "unknown key of policy 'random': 'seed': allowed: none"),
        (
            {"kind": "reward-conditioned", "strategy": {"kind": "submx"}},
            r"unknown strategy 'submx': did you mean 'submax'\?",
        ),
        (
            {"kind": "reward-conditioned", "strategy": {"weight": 2}},
            "a strategy needs a 'kind', one of: advantage",
        ),
        (
            {"kind": "reward-conditioned", "strategy": "submx"},
            r"unknown strategy 'submx': did you mean 'submax'\?",
        ),
        (
            {"kind": "reward-conditioned", "strategy": 3},
            "strategy of policy 'reward-conditioned' must be of type Strategy, not 3",
        ),
        (
            {"kind": "reward-conditioned", "estimator": {"kind": "counting", "smoothing": -1}},
            "smoothing must be a finite number, 0 or more",
        ),
        (
            {"kind": "reward-conditioned", "strategy": {"kind": "iterated", "depth": 1.5}},
            "depth of strategy 'iterated' must be of type int, not 1.5",
        ),
    ],
)
def test_what_cannot_be_built_says_why(specification, message):
    with raises_code("invalid-input"):
        make_policy(specification)
