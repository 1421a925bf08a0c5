import importlib
import pickle
import textwrap
from typing import NamedTuple

import pytest
from refusals import raises_code

from submax import policies
from submax.core import folder
from submax.core.conditioning.strategy import Strategy
from submax.core.folder import Folder, PluginWarning
from submax.environments import ENVIRONMENTS
from submax.environments.arms.bernoulli import Bernoulli
from submax.policies import POLICIES, make_policy
from submax.policies.classic.thompson import Thompson
from submax.simulation.delay import Delay
from submax.strategies import STRATEGIES
from submax.strategies.submax import SubMax
from submax.testing import check_policy

MY_POLICY = """
    from collections.abc import Iterator
    from dataclasses import dataclass
    from typing import Literal, Self

    import numpy as np

    from submax.core.contracts.chosen_actions import ChosenActions
    from submax.core.contracts.facts import Facts
    from submax.core.contracts.policy import Policy
    from submax.policies.classic.random import RandomState


    @dataclass(frozen=True)
    class MyPolicy(Policy[RandomState]):
        arm: int = 0
        boldness: float = 0.5
        history: tuple[float, ...] = ()
        limit: float | None = None
        mood: Literal["calm", "wild"] = "calm"

        @property
        def facts(self):
            return Facts(uses_context=False)

        def init(self, problem, replicas, rng):
            return RandomState(problem)

        def act(self, state, context, rng):
            index = np.full(context.shape[:2], self.arm, dtype=np.int64)
            return ChosenActions(state.problem.space.action(index), None)

        def log_prob(self, state, context, action):
            return np.where(state.problem.space.index(action) == self.arm, 0.0, -np.inf)

        def update(self, state, feedback, rng):
            return state

        @classmethod
        def examples(cls) -> Iterator[Self]:
            yield cls()
"""


@pytest.fixture(params=["", "from __future__ import annotations"], ids=["plain", "postponed"])
def my_file(request, tmp_path):
    path = tmp_path / "my_policy.py"
    path.write_text(request.param + textwrap.dedent(MY_POLICY))
    return path


def test_names_are_those_of_the_files():
    names = STRATEGIES.names()
    assert {"clipped", "iterated", "optimistic", "optimized", "submax", "target"} <= set(names)
    assert names == sorted(set(names))
    assert STRATEGIES.find("submax") is SubMax


def test_underscores_become_hyphens():
    assert {"batch-flush", "lag"} <= set(Folder("submax.simulation", Delay, "delay").names())


def test_abstract_classes_are_not_in_a_folder():
    assert Folder("submax.core", Strategy, "strategy").names() == []


def test_a_value_without_default_must_be_given():
    assert ENVIRONMENTS.build({"kind": "bernoulli", "arms": 4}, {}) == Bernoulli(4)
    with raises_code("invalid-input"):
        ENVIRONMENTS.build({"kind": "few-good", "high": 0.5}, {})


def test_a_class_of_the_users_own_file_is_built_and_keeps_the_contract(my_file, seed):
    policy = make_policy({"kind": f"{my_file}:MyPolicy", "boldness": 1, "history": [1, 2.5]})
    assert (policy.arm, policy.boldness, policy.history) == (0, 1.0, (1.0, 2.5))
    assert isinstance(policy.boldness, float)
    check_policy(policy, seed)


def test_optional_and_literal_values_are_taken(my_file):
    made = make_policy({"kind": f"{my_file}:MyPolicy", "limit": 2, "mood": "wild"})
    assert (made.limit, made.mood) == (2.0, "wild")
    assert make_policy({"kind": f"{my_file}:MyPolicy", "limit": None}).limit is None


def test_the_users_file_gives_the_same_class_each_time(my_file):
    one, two = (make_policy({"kind": f"{my_file}:MyPolicy", "arm": 2}) for _ in range(2))
    assert one == two == pickle.loads(pickle.dumps(one))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"arm": 1.5}, "arm of policy .* must be of type int, not 1.5"),
        ({"arm": True}, "arm of policy .* must be of type int, not True"),
        ({"boldness": "much"}, "boldness of policy .* must be of type float, not 'much'"),
        ({"history": 3}, "history of policy .* must be a list, not 3"),
        ({"history": [1.0, "x"]}, "history of policy .* must be of type float, not 'x'"),
        ({"limit": "none"}, "limit of policy .* must be of type float or NoneType, not 'none'"),
        ({"limit": True}, "limit of policy .* must be of type float or NoneType, not True"),
        ({"mood": "mild"}, "mood of policy .* must be of type Literal.*, not 'mild'"),
        ({"boldnes": 1.0}, "unknown key .*: 'boldnes': did you mean 'boldness'"),
    ],
)
def test_values_of_the_users_class_are_checked(my_file, values, message):
    with raises_code("invalid-input"):
        make_policy({"kind": f"{my_file}:MyPolicy", **values})


def test_a_wrong_class_name_in_the_users_file_gets_a_suggestion(my_file):
    with raises_code("invalid-input"):
        POLICIES.find(f"{my_file}:MyPolcy")


def test_an_instance_in_the_users_file_is_told_from_its_class(tmp_path):
    path = tmp_path / "with_instance.py"
    path.write_text("from submax.policies import Thompson\n\nmine = Thompson(2.0)\n")
    with raises_code("invalid-input"):
        POLICIES.find(f"{path}:mine")


def test_a_missing_file_is_named():
    with raises_code("invalid-input"):
        POLICIES.find("nowhere.py:MyPolicy")


def test_a_file_that_is_not_python_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not code")
    with raises_code("invalid-input"):
        POLICIES.find(f"{path}:MyPolicy")


def test_an_error_in_the_users_file_is_not_hidden_and_can_be_mended(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("1 / 0")
    with raises_code("invalid-input"):
        POLICIES.find(f"{path}:MyPolicy")
    path.write_text(textwrap.dedent(MY_POLICY) + "\n# mended\n")
    assert POLICIES.find(f"{path}:MyPolicy").__name__ == "MyPolicy"


def test_a_class_that_is_no_dataclass_is_refused(tmp_path):
    path = tmp_path / "plain_class.py"
    path.write_text(textwrap.dedent(MY_POLICY).replace("@dataclass(frozen=True)\n", ""))
    with raises_code("invalid-input"):
        make_policy({"kind": f"{path}:MyPolicy"})


def test_a_class_is_named_by_its_module_too():
    found = make_policy({"kind": "submax.policies.classic.thompson:Thompson", "alpha": 2.0})
    assert found == Thompson(alpha=2.0)
    with raises_code("invalid-input"):
        make_policy({"kind": "no_such_package:Thing"})


class EntryPointOf(NamedTuple):
    """An entry point of an installed package, as far as a folder uses it."""

    name: str
    found: object
    value: str = "a_package.module:Class"

    def load(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def installed(monkeypatch):
    """What installed packages add."""

    def installed(*entries):
        monkeypatch.setattr(folder, "entry_points", lambda group: entries)
        folder._plugins.cache_clear()
        folder._warn_of_hidden_plugins.cache_clear()
        policies._presets.cache_clear()

    yield installed
    monkeypatch.undo()
    folder._plugins.cache_clear()
    folder._warn_of_hidden_plugins.cache_clear()
    policies._presets.cache_clear()


class Added(Thompson):
    @classmethod
    def presets(cls):
        return {"added-by-a-package": cls(alpha=3.0)}


def test_an_installed_package_adds_a_policy(installed):
    installed(EntryPointOf("added", Added))
    assert "added" in POLICIES.names()
    assert make_policy({"kind": "added", "beta": 2.0}) == Added(beta=2.0)
    assert make_policy("added-by-a-package") == Added(alpha=3.0)


def test_a_package_that_adds_the_name_of_a_built_in_class_is_warned_of_once(installed):
    installed(EntryPointOf("thompson", Added))
    with pytest.warns(
        PluginWarning, match="'thompson' .a_package.module:Class., which is the name"
    ):
        assert POLICIES.find("thompson") is Thompson
    assert POLICIES.names().count("thompson") == 1


def test_a_package_that_adds_the_name_of_a_preset_is_warned_of(installed):
    class Same(Thompson):
        @classmethod
        def presets(cls):
            return {"ucb1": cls()}

    installed(EntryPointOf("same", Same))
    with pytest.warns(PluginWarning, match="declares the preset 'ucb1', which is declared already"):
        assert make_policy("ucb1") != Same()


def test_an_import_that_fails_in_the_users_file_names_the_users_line(tmp_path):
    path = tmp_path / "importing.py"
    path.write_text("\nimport no_such_module_at_all\n")
    with raises_code("invalid-input") as error:
        POLICIES.find(f"{path}:MyPolicy")
    assert "frozen" not in str(error.value)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (ImportError("no libfoo"), "cannot be imported: ImportError: no libfoo"),
        (SubMax, "must be a complete subclass of Policy, not <class"),
    ],
    ids=["not importable", "no policy"],
)
def test_a_broken_package_is_said_and_left_out(installed, found, reason):
    installed(EntryPointOf("broken", found))
    with pytest.warns(PluginWarning, match=reason):
        assert "thompson-1-1" in policies.presets()
    with raises_code("broken-plugin") as refused:
        make_policy({"kind": "broken"})
    assert refused.value.code == "broken-plugin"


@pytest.mark.parametrize("package", ["policies", "estimators", "strategies", "environments"])
def test_every_class_can_be_imported_from_its_package(package):
    module = importlib.import_module(f"submax.{package}")
    registry = getattr(module, package.upper())
    for found in registry.classes():
        assert getattr(module, found.__name__) is found
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = module.Nonsense


def test_files_whose_names_differ_by_a_dot_are_different_modules(tmp_path):
    for name, arm in (("a.b.py", 0), ("a_b.py", 1)):
        text = textwrap.dedent(MY_POLICY).replace("arm: int = 0", f"arm: int = {arm}")
        (tmp_path / name).write_text(text)
    found = [POLICIES.find(f"{tmp_path / name}:MyPolicy")().arm for name in ("a.b.py", "a_b.py")]
    assert found == [0, 1]


def test_a_part_of_another_kind_is_refused():
    with raises_code("invalid-input"):
        make_policy({"kind": "adaptive", "estimator": "counting"})
