import pytest
from refusals import raises_code

from submax.estimators import Counting
from submax.policies import UCB1, RewardConditioned, Thompson, make_policy, presets
from submax.strategies import Clipped, Iterated, SubMax, Target


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
    "specification",
    [
        "rcp-submx",
        "epsilon-greedy",
        None,
        {"alpha": 1.0},
        {"kind": "thomson"},
        {"kind": "thompson", "alfa": 1},
        {"kind": "thompson", "alpha": "1"},
        {"kind": "ucb1", "pending": 1},
        {"kind": "reward-conditioned", "strategy": {"kind": "submx"}},
        {"kind": "reward-conditioned", "estimator": {"kind": "counting", "smoothing": -1}},
    ],
    ids=str,
)
def test_what_cannot_be_built_is_refused(specification):
    with raises_code("invalid-input"):
        make_policy(specification)
