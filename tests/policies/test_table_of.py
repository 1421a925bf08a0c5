import json
from pathlib import Path

import pytest

from submax.policies import POLICIES, make_policy, presets
from submax.policies.policy_table import table_of

OWN = f"{Path(__file__).parents[1] / 'live' / 'weighted.py'}:Weighted"
EXAMPLES = [one for kind in POLICIES.classes() for one in kind.examples()]


@pytest.mark.parametrize("name", list(presets()))
def test_the_table_of_a_preset_makes_it_again(name):
    policy = make_policy(name)
    assert make_policy(table_of(policy)) == policy


@pytest.mark.parametrize("policy", EXAMPLES, ids=repr)
def test_the_table_of_every_example_makes_it_again_after_it_was_text(policy):
    assert make_policy(json.loads(json.dumps(table_of(policy)))) == policy


def test_a_policy_of_the_users_own_is_named_by_its_file():
    policy = make_policy({"kind": OWN, "weights": [1.0, 2.0]})
    table = table_of(policy)
    assert table == {"kind": OWN, "weights": [1.0, 2.0]}
    assert make_policy(table) == policy
