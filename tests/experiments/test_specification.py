import pytest

from submax.core.errors import InvalidValue
from submax.experiments.cells import cells, make_environment
from submax.experiments.selection import select
from submax.experiments.specification import load_file, load_paper, paper_experiments, parse

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
    specification = load_paper("bernoulli")
    assert (specification.observations, specification.replicas) == (5000, 100)
    every = cells(specification)
    assert len(every) == 27 * 15
    configurations = {(c.labels["arms"], c.labels["beta"], c.labels["delay"]) for c in every}
    assert configurations == {
        (arms, beta, delay)
        for arms in (10, 100, 500)
        for beta in (1, 9, 99)
        for delay in (100, 500, 1000)
    }
    assert {cell.policy_name for cell in every} == {
        "random", "epsilon-greedy-0.01", "epsilon-greedy-0.05", "epsilon-greedy-0.1",
        "epsilon-greedy-0.2", "ucb1", "ucb1-pending", "thompson-1-1", "thompson-1-9",
        "thompson-1-99", "gradient", "rcp-optimistic", "rcp-optimized", "rcp-submax",
        "rcp-iterated-2",
    }  # fmt: skip
    environment = load_paper("illustration").environment
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
    with pytest.raises(InvalidValue, match=r"beta=2; allowed: 1, 9\.5"):
        select(every, ["beta=2"])


def test_own_classes_are_found_beside_the_file(tmp_path):
    (tmp_path / "half.py").write_text(
        "from dataclasses import dataclass\n"
        "from submax.environments.bernoulli import Bernoulli\n"
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
