"""The scripts of docs/research compute what their pages say."""

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from submax.policies import make_policy
from submax.simulation.simulate import simulate

FOLDER = Path(__file__).parents[2] / "docs" / "research"


@pytest.fixture
def script(monkeypatch):
    """Import a script by its name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for path in FOLDER.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_the_ratio_is_to_the_best_classic_policy_and_errors_add_up(script):
    score = script("score")
    rivals = [score.Final("p", name, 1, 9, mean, 3.0) for name, mean in (("a", 60), ("b", 50))]
    ratio = score.ratio(score.Final("p", "mine", 1, 9, 40.0, 4.0), rivals)
    assert (ratio.best, ratio.value) == ("b", 0.8)
    assert ratio.error == pytest.approx(0.8 * (0.1**2 + 0.06**2) ** 0.5)


def test_a_cell_is_the_simulation_of_that_problem_and_seed(script):
    score, problem = script("score"), next(script("problems").paper())
    once, again, other = (score.final(problem, "random", seed, 20) for seed in (5, 5, 6))
    assert once == again
    assert once.mean != other.mean
    # Uniform choice loses 5000 times the best value less the mean, 10/11 − 1/2 on average.
    assert abs(once.mean - 5000 * (10 / 11 - 0.5)) < 5 * once.error


def test_every_problem_was_run_with_its_classic_policies(script):
    score, problems = script("score"), script("problems")
    assert (len(list(problems.paper())), len(list(problems.held_out()))) == (27, 29)
    reported, chosen = score._rivals(score.REPORTING), score._rivals(score.CHOOSING)
    for problem in problems.paper():
        for rivals in (reported, chosen):
            assert {one.policy for one in rivals[problem.name]} == set(problems.classic(problem))
    for problem in problems.held_out():
        assert {one.policy for one in reported[problem.name]} == set(problems.BASIC)


def test_worlds_are_those_of_the_simulation(script, seed):
    sublinear = script("sublinear")
    environment = sublinear.PROBLEMS["K = 10, Beta(1, 9)"]
    trace = simulate(
        environment, make_policy("random"), observations=30, replicas=5, seed=seed, points=None
    )
    values = sublinear.worlds(environment, 5, seed)
    taken = np.take_along_axis(values, trace.actions[..., 0], axis=1)
    regret = np.cumsum(values.max(axis=1, keepdims=True) - taken, axis=1)
    assert np.allclose(trace.accumulated_regret, regret)


def test_the_constant_is_that_of_lai_and_robbins(script):
    sublinear = script("sublinear")
    constants = sublinear.lower_bound_constant(np.array([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]]))
    quarter = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert constants == pytest.approx([2 * 0.25 / quarter, 0.5 / math.log(2)])
