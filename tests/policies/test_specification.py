"""Policies in plain data."""

import json

import pytest
from builtin_examples import examples_of
from refusals import raises_code

from submax.policies import POLICIES, Gridded, Thompson, make_policy, presets
from submax.policies.specification import PolicySpecification

EXAMPLES = list(examples_of(POLICIES))


class Imported(Thompson):
    """A class of somebody's own that can be imported."""


@pytest.mark.parametrize("policy", [*presets().values(), *EXAMPLES], ids=repr)
def test_every_policy_of_the_package_is_written_as_a_table(policy):
    specification = PolicySpecification.of(policy)
    assert not specification.is_object
    as_text = json.dumps(specification.data)
    assert PolicySpecification(json.loads(as_text)).build() == policy
    assert make_policy(json.loads(as_text)) == policy


def test_only_parameters_that_differ_from_the_default_are_written():
    assert PolicySpecification.of(Thompson()).data == {"kind": "thompson"}
    nested = PolicySpecification.of(Gridded(Thompson(beta=9.0)))
    assert nested.data == {"kind": "gridded", "policy": {"kind": "thompson", "beta": 9.0}}


def test_a_class_that_can_be_imported_is_named_by_its_module():
    specification = PolicySpecification.of(Imported(beta=2.0))
    assert specification.data == {"kind": f"{__name__}:Imported", "beta": 2.0}
    assert specification.build() == Imported(beta=2.0)


def test_an_object_that_no_table_can_describe_is_given_again():
    class Local(Thompson):
        pass

    specification = PolicySpecification.of(Local(beta=2.0))
    assert specification.is_object
    assert specification.label.endswith("Local")
    with raises_code("invalid-input"):
        specification.build()
    with raises_code("invalid-input"):
        specification.build(Local(beta=3.0))
    given = Local(beta=2.0)
    assert specification.build(given) is given


def test_tables_may_hold_presets_objects_and_a_name():
    table = {"kind": "gridded", "policy": "thompson-1-9", "name": "mine"}
    specification = PolicySpecification.of(table)
    assert specification.label == "mine"
    assert specification.build() == Gridded(Thompson(beta=9.0))
    with_object = PolicySpecification.of({"kind": "gridded", "policy": Thompson(beta=9.0)})
    assert with_object.data == {"kind": "gridded", "policy": {"kind": "thompson", "beta": 9.0}}


def test_a_class_of_ones_own_is_named_by_a_plain_text(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from submax.policies.thompson import Thompson\nclass Mine(Thompson): pass\n")
    made = make_policy(f"{path}:Mine")
    assert type(made).__name__ == "Mine"
    assert PolicySpecification.of(made).data == {"kind": f"{path}:Mine"}
    assert make_policy(PolicySpecification.of(made).data) == made
