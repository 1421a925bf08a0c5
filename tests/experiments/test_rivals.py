import numpy as np
import pytest

from submax.experiments.running.cells import configurations, make_environment, policy_of
from submax.experiments.specification import load_named, policy_name, rival_experiments

RIVALS = {
    "contextual": "contextual-rivals",
    "combinatorial": "combinatorial-rivals",
    "pricing": "pricing-rivals",
    "bakeoff-dense": "bakeoff-dense-rivals",
    "bakeoff-rare": "bakeoff-rare-rivals",
}


def test_every_experiment_has_its_rivals():
    assert set(rival_experiments()) == set(RIVALS.values())


@pytest.mark.parametrize("base", RIVALS)
def test_rivals_meet_the_same_worlds_for_as_long(base):
    """Random streams depend on seed and environment, so that replicas can be compared in pairs."""
    one, other = load_named(base), load_named(RIVALS[base])
    for name in ("environment", "delay", "seed", "replicas", "observations", "measure"):
        assert getattr(one, name) == getattr(other, name), name
    assert list(map(str, configurations(one))) == list(map(str, configurations(other)))


@pytest.mark.parametrize("base", RIVALS)
def test_rows_of_the_paper_have_the_same_settings(base):
    """A policy that both files name is the same policy in both."""
    one, other = load_named(base), load_named(RIVALS[base])
    known = {policy_name(row): row for row in [*one.policies, *one.more_policies]}
    shared = [row for row in other.policies if policy_name(row) in known]
    assert len(shared) >= 3
    for row in shared:
        assert policy_of(row) == policy_of(known[policy_name(row)])


@pytest.mark.parametrize("name", ["contextual-rivals", "combinatorial-rivals", "pricing-rivals"])
def test_every_policy_accepts_its_problem(name, seed):
    specification = load_named(name)
    environment, _ = next(configurations(specification))
    problem = make_environment(environment).problem
    for row in specification.policies:
        policy, rng = policy_of(row), np.random.default_rng(seed)
        state = policy.init(problem, 1, rng)
        action = policy.act(state, np.zeros((1, 1, problem.context_width)), rng).action
        assert problem.space.contains(action)
