import importlib
import json
import os
import pickle
import subprocess
import sys
import textwrap

import pytest
from refusals import raises_code

import submax
from submax.environments import ENVIRONMENTS
from submax.environments.arms import Bernoulli
from submax.policies import POLICIES, make_policy
from submax.policies.specification import PolicySpecification
from submax.strategies import STRATEGIES
from submax.strategies.weighted import SubMax
from submax.testing import check_policy

MY_POLICY = """
    from dataclasses import dataclass
    from typing import Literal

    import numpy as np

    from submax.core.policy import PolicyTraits, TabularPolicy
    from submax.policies.epsilon_greedy import RandomState


    @dataclass(frozen=True)
    class MyPolicy(TabularPolicy[RandomState]):
        arm: int = 0
        boldness: float = 0.5
        history: tuple[float, ...] = ()
        limit: float | None = None
        mood: Literal["calm", "wild"] = "calm"

        traits = PolicyTraits(uses_context=False)

        def init(self, problem, replicas, rng):
            return RandomState(problem)

        def probabilities(self, state, context):
            return np.tile(np.eye(state.problem.space.size)[self.arm], (*context.shape[:2], 1))

        def update(self, state, feedback, rng):
            return state
"""


@pytest.fixture(params=["", "from __future__ import annotations"], ids=["plain", "postponed"])
def my_file(request, tmp_path):
    path = tmp_path / "my_policy.py"
    path.write_text(request.param + textwrap.dedent(MY_POLICY))
    return path


def test_every_class_is_found_by_its_name():
    names = STRATEGIES.names()
    assert {"clipped", "iterated", "optimistic", "optimized", "submax", "target"} <= set(names)
    assert names == sorted(set(names))
    assert STRATEGIES.find("submax") is SubMax
    for registry in (POLICIES, STRATEGIES, ENVIRONMENTS):
        for name in registry.homes:
            assert registry.kind_of(registry.find(name)) == name


def test_a_value_without_default_must_be_given():
    assert ENVIRONMENTS.build({"kind": "bernoulli", "arms": 4}, {}) == Bernoulli(4)
    with raises_code("invalid-input", "arms"):
        ENVIRONMENTS.build({"kind": "poisson", "shape": 0.5}, {})


def test_a_class_of_the_users_own_file_is_built_and_keeps_the_contract(my_file, seed):
    policy = make_policy({"kind": f"{my_file}:MyPolicy", "boldness": 1, "history": [1, 2.5]})
    assert (policy.arm, policy.boldness, policy.history) == (0, 1.0, (1.0, 2.5))
    assert isinstance(policy.boldness, float)
    check_policy(policy, seed)
    # The class is always the same.
    table = {"kind": f"{my_file}:MyPolicy", "limit": 2, "mood": "wild"}
    one, two = make_policy(table), make_policy(table)
    assert (one.limit, one.mood) == (2.0, "wild")
    assert one == two == pickle.loads(pickle.dumps(one))
    assert make_policy({**table, "limit": None}).limit is None
    # A plain text names it, too.
    specification = PolicySpecification.of(make_policy(table["kind"]))
    assert specification.data == {"kind": table["kind"]}
    assert make_policy(specification.data) == make_policy(table["kind"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arm", 1.5),
        ("arm", True),
        ("boldness", "much"),
        ("history", 3),
        ("history", [1.0, "x"]),
        ("limit", "none"),
        ("mood", "mild"),
    ],
)
def test_values_of_the_users_class_are_checked(my_file, name, value):
    with raises_code("invalid-input", name):
        make_policy({"kind": f"{my_file}:MyPolicy", name: value})


def test_names_that_lead_to_no_class_are_refused(my_file, tmp_path):
    (tmp_path / "notes.txt").write_text("not code")
    (tmp_path / "instance.py").write_text("from submax.policies import Thompson\nit = Thompson()\n")
    plain = textwrap.dedent(MY_POLICY).replace("@dataclass(frozen=True)\n", "")
    (tmp_path / "no_dataclass.py").write_text(plain)
    for wrong in (
        f"{my_file}:MyPolcy",
        f"{tmp_path}/instance.py:it",
        f"{tmp_path}/no_dataclass.py:MyPolicy",
        f"{tmp_path}/notes.txt:MyPolicy",
        f"{tmp_path}/nowhere.py:MyPolicy",
        "no_such_package:Thing",
        "thompsn",
    ):
        with raises_code("invalid-input"):
            make_policy({"kind": wrong})
    with raises_code("invalid-input"):
        make_policy({"kind": f"{my_file}:MyPolicy", "boldnes": 1.0})


@pytest.mark.parametrize("line", ["1 / 0", "import no_such_module_at_all"])
def test_an_error_in_the_users_file_names_its_line_and_can_be_mended(tmp_path, line):
    path = tmp_path / "broken.py"
    path.write_text(f"\n\n{line}\n")
    with raises_code("invalid-input") as error:
        POLICIES.find(f"{path}:MyPolicy")
    assert f"{path}, line 3" in str(error.value)
    path.write_text(textwrap.dedent(MY_POLICY) + "\n# mended\n")
    assert POLICIES.find(f"{path}:MyPolicy").__name__ == "MyPolicy"


@pytest.mark.parametrize("package", ["policies", "estimators", "strategies", "environments"])
def test_every_class_can_be_imported_from_its_package(package):
    module = importlib.import_module(f"submax.{package}")
    registry = getattr(module, package.upper())
    for found in map(registry.find, registry.homes):
        assert getattr(module, found.__name__) is found
    for where in (module, submax):
        with pytest.raises(AttributeError):
            _ = where.Nonsense


PLUGIN = """
from submax.policies import Thompson
from submax.strategies import SubMax

PRESETS = {"added-by-a-package": {"kind": "added", "alpha": 3.0}, "ucb1": {"kind": "added"}}


class Added(Thompson):
    pass
"""
ENTRY_POINTS = """
[submax.presets]
added = a_plugin:PRESETS
[submax.policies]
added = a_plugin:Added
thompson = a_plugin:Added
missing = a_plugin:Missing
strategy = a_plugin:SubMax
"""
USER = """
import json
from submax.core.errors import Error
from submax.policies import POLICIES, make_policy

def code(kind):
    try:
        make_policy({"kind": kind})
    except Error as error:
        return error.code

found = {
    "names": POLICIES.names(),
    "added": repr(make_policy({"kind": "added", "beta": 2.0})),
    "preset": repr(make_policy("added-by-a-package")),
    "built in": [POLICIES.find("thompson").__module__, type(make_policy("ucb1")).__name__],
    "codes": [code("missing"), code("strategy")],
}
print(json.dumps(found))
"""


def test_an_installed_package_adds_policies_and_replaces_none(tmp_path):
    """What is broken, or has the name of something built in, is left out."""
    (tmp_path / "a_plugin.py").write_text(PLUGIN)
    facts = tmp_path / "a_plugin-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: a-plugin\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRY_POINTS)
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    words = [sys.executable, "-c", USER]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert "added" in found["names"]
    assert found["names"].count("thompson") == 1
    assert found["added"].startswith("Added(alpha=1.0, beta=2.0")
    assert found["preset"].startswith("Added(alpha=3.0")
    assert found["built in"] == ["submax.policies.thompson", "UCB1"]
    assert found["codes"] == ["broken-plugin"] * 2
    words = [sys.executable, "-m", "submax", "policies"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert "  added-by-a-package\n" in done.stdout
