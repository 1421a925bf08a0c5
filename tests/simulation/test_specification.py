import pytest
from refusals import raises_code

from submax import Training, make_policy
from submax.environments import ENVIRONMENTS
from submax.estimators.network import CVAE
from submax.policies.reward_conditioned import RewardConditioned
from submax.simulation.experiment import (
    cells,
    load_file,
    load_named,
    parse,
    policy_name,
)

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


def own_rows(folder, file="rows.csv"):
    """An experiment on rows of a file, which lies beside it."""
    folder.mkdir(exist_ok=True)
    (folder / "rows.csv").write_text("x,label\n1,a\n2,b\n")
    path = folder / "own.toml"
    path.write_text(
        'observations = 20\npolicies = ["random"]\n'
        f'[environment]\nkind = "classification"\nfile = "{file}"\n'
    )
    return path


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
    own = parse(OWN, "own")
    chosen = cells(own, ["arms=3", "beta=9.50", "policy=deep"])
    assert [cell.labels["delay"] for cell in chosen] == [0, 5]
    assert {cell.key for cell in chosen} < {cell.key for cell in cells(own)}
    for only in (["arms=3", "arms=4.0", "delay=0"], ["steps=0"]):
        assert len(cells(own, only)) == 2 * 2 * 2
    for only in ("beta=2", "step=0", "beta", "policy=none"):
        with raises_code("invalid-input"):
            cells(own, [only])


def test_nothing_is_built_that_is_not_selected():
    text = OWN.replace('"random"', '"random", "no such policy"').replace("[3, 4]", "[3, -4]")
    assert len(cells(parse(text, "own"), ["arms=3", "policy=random"])) == 4
    with raises_code("invalid-input"):
        cells(parse(text, "own"), ["arms=3"])


def test_environments_of_several_kinds_share_a_file():
    text = OWN.replace('kind = "bernoulli"', 'kind = ["bernoulli", "poisson"]')
    every = cells(parse(text.replace("beta = [1, 9.5]", ""), "own"))
    assert len(every) == 2 * 2 * 2 * 2
    labels = {"environment": "bernoulli", "arms": 3, "alpha": 1, "beta": 1, "delay": 0}
    assert every[0].labels == labels
    several = text.replace("[environment]", "[[environment]]") + "\n"
    several = several.replace('["bernoulli", "poisson"]', '"bernoulli"')
    # A list of means is one environment, and a list of such lists has several.
    for means in ("[0.1, 0.2]", "[[0.3, 0.4], [0.5, 0.6, 0.7]]"):
        several += f"[[environment]]\nkind = 'gaussian'\nmeans = {means}\n"
    chosen = cells(parse(several, "own"), ["kind=gaussian", "policy=random", "steps=0"])
    labels = [(cell.labels["means"], cell.labels["arms"]) for cell in chosen]
    assert labels == [("0.1x0.2", 2), ("0.3x0.4", 2), ("0.5x0.6x0.7", 3)]


def test_delays_of_the_same_length_are_told_apart():
    drawn = 'kind = "geometric"\nmean = 5\nmissing = [0.0, 0.5]'
    own = parse(OWN.replace('kind = "lag"\nsteps = [0, 5]', drawn), "own")
    found = [cell.labels for cell in cells(own, ["arms=3", "beta=1", "policy=random"])]
    assert [(one["delay"], one["delay_missing"]) for one in found] == [(5, 0), (5, 0.5)]


def test_own_classes_are_found_beside_the_file(tmp_path):
    (tmp_path / "half.py").write_text(
        "from dataclasses import dataclass\n"
        "from submax.environments.arms import Bernoulli\n"
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
    environment = ENVIRONMENTS.build(cells(specification)[0].environment, {})
    assert type(environment).__name__ == "Half"


def test_what_is_defined_stands_for_its_name_also_within_another():
    specification = parse(DEFINING, "own")
    assert specification.policies[0] == "random"
    expected = RewardConditioned(CVAE(hidden=4, training=Training(steps=7, batch=16)))
    assert make_policy(specification.policies[1]) == expected
    assert [cell.policy_name for cell in cells(specification)] == ["random", "own"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # A name that is not defined, or that is defined by itself.
        ('"$short"', '"$shirt"'),
        ('"$chance", {', '"$", {'),
        ('"$short"', '"$cvae"'),
        # Keys and tables that are something else.
        ("[define]\n", "define = 3\n[nothing]\n"),
        ("[define]", "[[define]]"),
        # Values of a wrong type, or missing.
        ("observations = 20", 'observations = "20"'),
        ("observations = 20\n", ""),
        ('title = "Mine"', 'measure = "loss"'),
        ('["$chance", {', "[3, {"),
        ('"$chance", { name = "own", kind = "reward-conditioned", estimator = "$cvae" }', ""),
        ("observations = 20", "observations = "),
        # A quick look.
        ("quick = {", "quick = { replica = 2,"),
        ("quick = {", "quick = { seed = 2,"),
        ("quick = {", "quick = { replicas = 0,"),
    ],
)
def test_a_file_that_is_no_experiment_is_refused(old, new):
    assert old in DEFINING
    with raises_code("invalid-input"):
        parse(DEFINING.replace(old, new), "own").quickly()


def test_a_quick_look_is_smaller_and_has_keys_of_its_own():
    quick = parse(DEFINING, "own").quickly()
    assert (quick.replicas, quick.observations, quick.policies) == (10, 5, ["random"])
    assert quick.title != "Mine"
    few = parse(DEFINING.replace("quick = {", "quick = { replicas = 3,"), "own").quickly()
    assert few.replicas == 3
    assert parse(DEFINING, "own").quickly(replicas=7).replicas == 7
    already = parse(DEFINING.replace("replicas = 50", "replicas = 4"), "own").quickly()
    assert already.replicas == 4
    whole = {cell.key for cell in cells(parse(DEFINING, "own"))}
    assert whole.isdisjoint(cell.key for cell in cells(quick))


def test_data_lie_beside_the_file_and_are_part_of_the_key(tmp_path):
    """Also in a folder with a colon in its name, and the name of the file alone is shown."""
    file = own_rows(tmp_path / "12:30")
    rows, keys = file.with_name("rows.csv"), []
    for text in ("x,label\n1,a\n2,b\n", "x,label\n1,b\n2,a\n", "x,label\n1,a\n2,b\n"):
        rows.write_text(text)
        (cell,) = cells(load_file(file))
        keys.append(cell.key)
    assert cell.environment["file"] == str(rows)
    assert cell.labels["file"] == "rows.csv"
    assert keys[0] == keys[2] != keys[1]
    rows.unlink()
    with raises_code("invalid-input"):
        cells(load_file(file))


def test_packaged_sets_are_no_files_of_the_user(tmp_path, monkeypatch):
    """Not even where a file has the name of the package."""
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sklearn").write_text("no package")
    (cell,) = cells(load_file(own_rows(tmp_path, "sklearn:iris")))
    assert cell.environment["file"] == cell.labels["file"] == "sklearn:iris"


def test_a_file_that_extends_an_experiment_has_only_what_differs():
    text = 'extends = "contextual"\nreplicas = 3\n[environment]\nhidden = 100\n'
    base, own = load_named("contextual"), parse(text, "own")
    environment = {**base.environment, "hidden": 100}
    assert own == base.changed(name="own", replicas=3, environment=environment)
    text = 'extends = "contextual"\n[define]\ncvae = { kind = "cvae", hidden = 7 }\n'
    policies = {policy_name(policy): policy for policy in parse(text, "own").policies}
    assert policies["rcp-submax"]["estimator"] == {"kind": "cvae", "hidden": 7}
    with raises_code("invalid-input", "experiment"):
        parse('extends = "contextul"', "own")
