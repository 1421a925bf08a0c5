import numpy as np
import pytest
from refusals import raises_code

from submax.core.memory.training import Training
from submax.environments.tables.packaged_set import LOADERS
from submax.estimators.cvae import CVAE
from submax.experiments.running.cells import cells, make_environment, policy_of, rehearse
from submax.experiments.running.selection import select, without_more
from submax.experiments.specification import (
    beyond_experiments,
    load_file,
    load_named,
    paper_experiments,
    parse,
    policy_name,
)
from submax.experiments.statements.bernoulli_comparisons import CLASSIC, STRONG
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned

OWN = """
observations = 20
policies = [
    "random",
    { name = "deep", kind = "reward-conditioned", strategy = { kind = "iterated", depth = 4 } },
]
[environment]
kind = "bernoulli"
arms = [3, 4]
beta = [1, 9.5]
[delay]
kind = "lag"
steps = [0, 5]
"""


def test_paper_experiments_are_complete():
    assert paper_experiments()[:2] == ["illustration", "bernoulli"]
    specification = load_named("bernoulli")
    assert (specification.observations, specification.replicas) == (5000, 100)
    every = cells(specification)
    assert len(every) == 27 * (14 + 23)
    configurations = {(c.labels["arms"], c.labels["beta"], c.labels["delay"]) for c in every}
    assert configurations == {
        (arms, beta, delay)
        for arms in (10, 100, 500)
        for beta in (1, 9, 99)
        for delay in (100, 500, 1000)
    }
    assert {cell.policy_name for cell in without_more(specification, every, [])} == {
        "random", "epsilon-greedy-0.01", "epsilon-greedy-0.05", "epsilon-greedy-0.1",
        "epsilon-greedy-0.2", "ucb1", "thompson-1-1", "thompson-1-9", "thompson-1-99",
        "rcp-marginalized", "rcp-optimistic", "rcp-optimized", "rcp-submax", "rcp-adaptive",
    }  # fmt: skip
    assert {*CLASSIC, *STRONG} <= {cell.policy_name for cell in every}
    assert without_more(specification, every, ["policy=kl-ucb"]) == every
    environment = load_named("illustration").environment
    assert make_environment(environment).problem.space.size == 10


def test_lists_stand_for_all_combinations():
    every = cells(parse(OWN, "own"))
    assert len(every) == 2 * 2 * 2 * 2
    assert every[0].labels == {"arms": 3, "alpha": 1, "beta": 1, "delay": 0}
    assert {cell.policy_name for cell in every} == {"random", "deep"}
    assert len({cell.key for cell in every}) == len(every)


def test_key_changes_with_everything_that_changes_the_result():
    specification = parse(OWN, "own")
    before = {cell.key for cell in cells(specification)}
    for change in ({"seed": 5}, {"replicas": 7}, {"observations": 21}, {"points": 10}):
        assert before.isdisjoint(cell.key for cell in cells(specification.changed(**change)))
    assert before == {cell.key for cell in cells(specification.changed(title="other"))}


def test_selection():
    every = cells(parse(OWN, "own"))
    assert select(every, []) == every
    chosen = select(every, ["arms=3", "beta=9.50", "policy=deep"])
    assert [cell.labels["delay"] for cell in chosen] == [0, 5]
    either = select(every, ["arms=3", "arms=4.0", "delay=0"])
    assert len(either) == 2 * 2 * 2
    with raises_code("invalid-input"):
        select(every, ["beta=2"])


def test_own_classes_are_found_beside_the_file(tmp_path):
    (tmp_path / "half.py").write_text(
        "from dataclasses import dataclass\n"
        "from submax.environments.arms.bernoulli import Bernoulli\n"
        "import numpy as np\n"
        "@dataclass(frozen=True)\n"
        "class Half(Bernoulli):\n"
        "    '''All arms pay half the time.'''\n"
        "    def reset(self, replicas, rng):\n"
        "        return np.full((replicas, self.arms), 0.5)\n"
    )
    text = OWN.replace('kind = "bernoulli"', 'kind = "half.py:Half"')
    (tmp_path / "own.toml").write_text(text)
    specification = load_file(tmp_path / "own.toml")
    environment = make_environment(cells(specification)[0].environment)
    assert type(environment).__name__ == "Half"


DEFINING = """
observations = 20
replicas = 50
title = "Mine"
policies = ["$chance", { name = "own", kind = "reward-conditioned", estimator = "$cvae" }]
quick = { observations = 5, policies = ["$chance"] }
[environment]
kind = "bernoulli"
arms = 3
[define]
chance = "random"
short = { steps = 7, batch = 16 }
cvae = { kind = "cvae", hidden = 4, training = "$short" }
"""


def test_what_is_defined_stands_for_its_name_also_within_another():
    specification = parse(DEFINING, "own")
    assert specification.policies[0] == "random"
    expected = RewardConditioned(CVAE(hidden=4, training=Training(steps=7, batch=16)))
    assert policy_of(specification.policies[1]) == expected
    assert [cell.policy_name for cell in cells(specification)] == ["random", "own"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"$cvae"', '"$cave"', r"unknown name after \$: 'cave': did you mean 'cvae'\?"),
        ('"$short"', '"$shirt"', r"unknown name after \$: 'shirt': did you mean 'short'\?"),
        ('"$chance", {', '"$", {', r"unknown name after \$: ''"),
        ('"$short"', '"$cvae"', r"unknown name after \$: 'cvae'"),
        ("[define]\n", "define = 3\n[nothing]\n", "unknown key in own.toml: 'nothing'"),
        ("[define]", "[[define]]", "define = .* must be a table, not a list"),
    ],
)
def test_a_name_that_is_not_defined_is_refused(old, new, words):
    with raises_code("invalid-input"):
        parse(DEFINING.replace(old, new), "own")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("observations = 20", 'observations = "20"', "observations = '20' must be a whole number"),
        ("observations = 20\n", "", "'observations' is missing: add it, such as observations"),
        ('title = "Mine"', 'measure = "loss"', "'loss' is not allowed, .*: 'regret', 'reward'"),
        ('["$chance", {', "[3, {", "must have a text in quotes or a table where it has a whole"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_in_the_words_of_toml(old, new, words):
    with raises_code("invalid-input"):
        parse(DEFINING.replace(old, new), "own")


def test_a_quick_look_is_smaller_and_says_so():
    quick = parse(DEFINING, "own").quickly()
    assert (quick.replicas, quick.observations, quick.policies) == (10, 5, ["random"])
    assert quick.title == "Mine (quick look: 10 replicas)"
    few = parse(DEFINING.replace("quick = {", "quick = { replicas = 3,"), "own").quickly()
    assert few.title == "Mine (quick look: 3 replicas)"
    wanted = parse(DEFINING, "own").quickly(replicas=7)
    assert (wanted.replicas, wanted.title) == (7, "Mine (quick look: 7 replicas)")
    already = parse(DEFINING.replace("replicas = 50", "replicas = 4"), "own").quickly()
    assert already.replicas == 4
    assert {cell.key for cell in cells(quick)}.isdisjoint(
        cell.key for cell in cells(parse(DEFINING, "own"))
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("quick = { replica = 2,", "unknown key of quick: 'replica': did you mean 'replicas'"),
        ("quick = { seed = 2,", "unknown key of quick: 'seed'"),
        ("quick = { replicas = 0,", "replicas must be a whole number, at least 1, not 0"),
    ],
)
def test_wrong_values_of_a_quick_look_are_refused(change, words):
    with raises_code("invalid-input"):
        parse(DEFINING.replace("quick = {", change), "own").quickly()


@pytest.mark.parametrize("name", [*paper_experiments(), *beyond_experiments()])
def test_every_experiment_can_be_built(name):
    specification = load_named(name)
    for version in (specification, specification.quickly()):
        every = cells(version)
        assert len({cell.key for cell in every}) == len(every)
        named = {*map(policy_name, version.policies), *map(policy_name, version.more_policies)}
        assert {cell.policy_name for cell in every} == named
    assert "$" not in str(specification.policies)
    assert specification.title


def test_no_experiment_beyond_the_paper_has_a_name_of_the_paper():
    data, moving = ["bump", "classification"], ["continual", "drifting"]
    beyond = [*data, *moving, "gaussian", "offline", "poisson", "pricing", "ratings"]
    assert beyond_experiments() == beyond
    assert set(beyond).isdisjoint(paper_experiments())


@pytest.mark.parametrize("name", beyond_experiments())
def test_the_policies_of_every_experiment_beyond_the_paper_fit_their_environments(name):
    every = cells(load_named(name))
    for cell in every:
        policy_of(cell.policy).init(
            make_environment(cell.environment).problem, 1, np.random.default_rng(0)
        )
    # Networks would be compiled; what they decide before any training is tested elsewhere.
    rehearse(cell for cell in every if not policy_of(cell.policy).facts.trains_models)


def test_the_networks_of_the_paper_are_the_same_for_every_strategy():
    for name in ("contextual", "combinatorial"):
        policies = [policy_of(policy) for policy in load_named(name).policies]
        conditioned = [one for one in policies if isinstance(one, RewardConditioned)]
        networks = {one.estimator for one in conditioned if isinstance(one.estimator, CVAE)}
        assert len(networks) == 1


def test_several_numbers_become_one_text():
    (labels,) = {tuple(cell.labels.items()) for cell in cells(load_named("combinatorial"))}
    assert dict(labels)["sizes"] == "2x4x8x16x32"
    assert dict(labels)["shift"] == -3


def test_data_lie_beside_the_file_and_are_part_of_the_key(tmp_path):
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "own.toml").write_text(
        'observations = 20\npolicies = ["random"]\n'
        '[environment]\nkind = "classification"\nfile = "rows.csv"\n'
    )
    keys = []
    for rows in ("x,label\n1,a\n2,b\n", "x,label\n1,b\n2,a\n", "x,label\n1,a\n2,b\n"):
        (folder / "rows.csv").write_text(rows)
        (cell,) = cells(load_file(folder / "own.toml"))
        keys.append(cell.key)
    assert cell.environment["file"] == str(folder / "rows.csv")
    assert keys[0] == keys[2] != keys[1]
    (folder / "rows.csv").unlink()
    with raises_code("invalid-input"):
        cells(load_file(folder / "own.toml"))


def test_packaged_sets_are_no_files_of_the_user(tmp_path, monkeypatch):
    """Not even where a file has the name of the package."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sklearn").write_text("no package")
    file = tmp_path / "own.toml"
    file.write_text(
        'observations = 20\npolicies = ["random"]\n'
        '[environment]\nkind = "classification"\nfile = ["sklearn:digits", "sklearn:iris"]\n'
    )
    every = cells(load_file(file))
    assert [cell.environment["file"] for cell in every] == ["sklearn:digits", "sklearn:iris"]
    assert [cell.labels["file"] for cell in every] == ["sklearn:digits", "sklearn:iris"]
    assert {cell.own_code for cell in every} == {""}


def test_the_folder_of_a_data_file_may_have_a_colon(tmp_path):
    """Its content is part of the key, and its name alone is shown."""
    folder = tmp_path / "12:30"
    folder.mkdir()
    (folder / "rows.csv").write_text("x,label\n1,a\n2,b\n")
    (folder / "own.toml").write_text(
        'observations = 20\npolicies = ["random"]\n'
        '[environment]\nkind = "classification"\nfile = "rows.csv"\n'
    )
    (cell,) = cells(load_file(folder / "own.toml"))
    assert cell.labels["file"] == "rows.csv"
    assert cell.own_code


def test_classification_runs_every_policy_on_every_packaged_set():
    specification = load_named("classification")
    every = cells(specification)
    assert {cell.labels["file"] for cell in every} == set(LOADERS)
    assert len(every) == len(LOADERS) * len(specification.policies)


def test_a_file_that_extends_an_experiment_has_only_what_differs():
    text = 'extends = "contextual"\nreplicas = 3\n[environment]\nhidden = 100\n'
    base, own = load_named("contextual"), parse(text, "own")
    environment = {**base.environment, "hidden": 100}
    assert own == base.changed(name="own", replicas=3, environment=environment)


def test_definitions_of_the_extended_experiment_can_be_replaced():
    text = 'extends = "contextual"\n[define]\ncvae = { kind = "cvae", hidden = 7 }\n'
    (submax,) = [
        policy for policy in parse(text, "own").policies if policy_name(policy) == "rcp-submax"
    ]
    assert submax["estimator"] == {"kind": "cvae", "hidden": 7}


def test_only_an_experiment_that_comes_with_submax_can_be_extended():
    with raises_code("invalid-input", "experiment"):
        parse('extends = "contextul"', "own")
