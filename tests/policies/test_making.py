import json

import numpy as np
import pytest
from builtin_examples import examples_of
from refusals import raises_code

from submax import Arms, Box, Continuous, Counts, Memory, Problem, Slots, make_policy
from submax.estimators import Counting
from submax.policies import (
    POLICIES,
    Gridded,
    PosteriorSubMax,
    RewardConditioned,
    SlotBySlot,
    Thompson,
    presets,
)
from submax.policies.specification import PolicySpecification
from submax.strategies import Iterated, Tracking
from submax.testing.problems import some_feedback


@pytest.mark.parametrize(
    "specification",
    [
        "rcp-submx",
        "epsilon-greedy",
        None,
        {"alpha": 1.0},
        {"kind": "thomson"},
        {"kind": "thompson", "alfa": 1},
        {"kind": "thompson", "alpha": "1"},
        {"kind": "ucb1", "pending": 1},
        {"kind": "adaptive", "estimator": "counting"},
        {"kind": "reward-conditioned", "strategy": {"kind": "submx"}},
        {"kind": "reward-conditioned", "estimator": {"kind": "counting", "smoothing": -1}},
    ],
    ids=str,
)
def test_what_cannot_be_built_is_refused(specification):
    with raises_code("invalid-input"):
        make_policy(specification)


# Policies in plain data

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
    short = make_policy({"kind": "reward-conditioned", "strategy": "iterated"})
    assert short == RewardConditioned(Counting(), Iterated())
    with_object = PolicySpecification.of({"kind": "gridded", "policy": Thompson(beta=9.0)})
    assert with_object.data == {"kind": "gridded", "policy": {"kind": "thompson", "beta": 9.0}}


# Policies as texts

TEXTS = {
    "epsilon-greedy-0.1,epsilon=0.3": {"kind": "epsilon-greedy", "epsilon": 0.3},
    "linear-thompson,width=0.5,draws=16": {"kind": "linear-thompson", "width": 0.5, "draws": 16},
    "ucb1,pending=true": {"kind": "ucb1", "pending": True},
    "rcp-submax,estimator.smoothing=2": {
        "kind": "reward-conditioned",
        "estimator": {"kind": "counting", "smoothing": 2.0},
    },
    "linucb@greedy": {"kind": "tempered", "policy": "linucb"},
    "linucb,alpha=2@temperature=0.5": {
        "kind": "tempered",
        "policy": {"kind": "linucb", "alpha": 2.0},
        "temperature": 0.5,
    },
}


@pytest.mark.parametrize(("text", "table"), TEXTS.items(), ids=TEXTS)
def test_a_text_stands_for_a_table_and_is_stored_as_one(text, table):
    assert make_policy(text) == make_policy(table)
    specification = PolicySpecification.of(text)
    assert specification.label == specification.title == specification.data["name"] == text
    stored = json.loads(json.dumps(specification.data))
    assert PolicySpecification(stored).build() == make_policy(stored) == make_policy(table)
    assert PolicySpecification.of(stored) == specification
    nested = {"kind": "gridded", "policy": text}
    assert make_policy(nested) == Gridded(make_policy(table))
    assert make_policy(PolicySpecification.of(nested).data) == make_policy(nested)
    assert make_policy(make_policy(text)) == make_policy(text)


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("linucb@gredy", "policy"),
        ("linucb@temperature=warm", "policy"),
        ("linucb@temperature=-1", None),
        ("linucb@greedy,alpha=2", "policy"),
        ("linucb,alpha", "policy"),
        ("linucb,=2", "policy"),
        ("linucb,alpa=2", None),
        ("linucb,alpha=high", "alpha"),
        ("linucb,alpha.beta=1", "alpha"),
        ("linucbb,alpha=2", "policy"),
        ("linucbb@greedy", "policy"),
        ("linucb,", "policy"),
        ("thompson@greedy", None),
        ("rcp-submax,estimator.smooth=2", None),
    ],
)
def test_a_wrong_text_is_refused_alone_and_within_a_table(text, parameter):
    for specification in (text, {"kind": "gridded", "policy": text}):
        with raises_code("invalid-input", parameter):
            make_policy(specification)


@pytest.mark.parametrize("folder", ["plain", "me@work", "one,two"])
def test_a_text_names_a_class_in_a_file_whose_code_is_not_run_to_store_it(folder, tmp_path):
    (tmp_path / folder).mkdir()
    kind = f"{tmp_path / folder / 'mine.py'}:Mine"
    whole = {"kind": kind, "beta": 2, "memory": {"window": 9}}
    text = f"{kind},beta=2,memory.window=9"
    assert PolicySpecification.of(kind).data == kind
    assert PolicySpecification.of(text).data == {"name": text, **whole}
    tempered = {"kind": "tempered", "policy": whole, "temperature": 0.0}
    assert PolicySpecification.of(f"{text}@greedy").data == {"name": f"{text}@greedy", **tempered}
    (tmp_path / folder / "mine.py").write_text(
        "from submax.policies import Thompson\n\n\nclass Mine(Thompson):\n    pass\n"
    )
    made = make_policy(f"{text}@greedy").policy
    assert (type(made).__name__, made.beta, made.memory) == ("Mine", 2.0, Memory(window=9))


# What a policy is not made for is refused before any decision, and before memory is taken

NUMBERS, NUMBERS_AND_SLOT = Problem(Box((0.0,), (1.0,))), Problem(Box((0.0,), (1.0,), (2,)))
UNBOUNDED, COUNTS = (Problem(Arms(2), scale=scale) for scale in (Continuous(), Counts()))
NAIVE_BAYES = {"kind": "classifier", "classifier": "sklearn.naive_bayes.GaussianNB"}
TRILLION = Problem(Slots((100,) * 6))
CASES = [
    # Actions that are numbers.
    ({"kind": "reward-conditioned", "strategy": "tracking"}, NUMBERS),
    ({"kind": "reward-conditioned", "estimator": "cvae", "strategy": "optimized"}, NUMBERS),
    *(
        ({"kind": "reward-conditioned", "estimator": estimator}, problem)
        for estimator in ("counting", "softmax", NAIVE_BAYES)
        for problem in (NUMBERS, NUMBERS_AND_SLOT)
    ),
    *((name, NUMBERS) for name in ("climbing-dropout-thompson", "climbing-epsilon-greedy-0.1")),
    *((name, NUMBERS) for name in ("policy-gradient", "posterior-slots")),
    ("rcp-cvae-submax-by-slot", NUMBERS),
    ("hill-climbing-thompson", NUMBERS_AND_SLOT),
    # Rewards without bounds, or of another kind.
    *((name, UNBOUNDED) for name in ("kl-ucb", "bayes-ucb-1-1", "moss", "imed", "thompson-fitted")),
    ("thompson-fitted", COUNTS),
    ("hill-climbing-thompson", UNBOUNDED),
    ("cascade-kl-ucb", Problem(Slots((3, 3)), scale=Continuous())),
    (
        {
            "kind": "reward-conditioned",
            "strategy": {"kind": "target", "distribution": [0.2, 0.3, 0.5]},
        },
        Problem(Arms(2)),
    ),
    # Actions that are not pairs.
    ("relative-ucb", Problem(Arms(3))),
    ("relative-ucb", Problem(Slots((2, 3)))),
    # A strategy that reads the values of joint actions.
    ({"kind": "slot-by-slot", "strategy": "optimized"}, Problem(Slots((2, 2)))),
    # More actions, cells or effects than memory is taken for.
    ("epsilon-greedy-0.1", Problem(Arms(2**20 + 1))),
    ("rcp-submax", Problem(Slots((2000, 2000)))),
    ({"kind": "reward-conditioned", "estimator": NAIVE_BAYES}, Problem(Slots((2000, 2000)))),
    ("rcp-cvae-optimized", TRILLION),
    ({"kind": "reward-conditioned", "estimator": "cvae", "strategy": "iterated"}, TRILLION),
    ("posterior-submax", Problem(Arms(500_000), 3)),
    ("posterior-slots", Problem(Slots((100, 100)), 200)),
    ("linucb", Problem(Arms(2**16), context_width=9_999)),
    ("hill-climbing-thompson", Problem(Slots((10_000, 10_000, 10_000)))),
    ({"kind": "fourier-thompson", "points": 129}, Problem(Box((0.0, 0.0), (1.0, 1.0)))),
    # A model that does not take the parameter.
    (
        {
            "kind": "greedy-regression",
            "regressor": "sklearn.linear_model.LinearRegression",
            "parameters": {"depth": 3},
        },
        Problem(Arms(3), context_width=2),
    ),
]


@pytest.mark.parametrize(("policy", "problem"), CASES, ids=str)
def test_it_is_refused(policy, problem):
    made = make_policy(policy)
    with raises_code("invalid-input"):
        made.init(problem, 1, np.random.default_rng(0))


def test_parts_of_another_kind_are_refused():
    for policy in (RewardConditioned, SlotBySlot):
        with raises_code("invalid-input"):
            policy(Counting, Tracking())
        with raises_code("invalid-input"):
            policy(Counting(), "submax")
        with raises_code("invalid-input"):
            policy(Tracking(), Counting())
    with raises_code("invalid-input"):
        PosteriorSubMax(memory=Memory(window=5))


@pytest.mark.parametrize("name", ["exp3-ix", "policy-gradient"])
def test_feedback_without_propensities_is_refused_where_they_are_needed(name, seed):
    policy, rng, problem = make_policy(name), np.random.default_rng(seed), Problem(Arms(2))
    feedback = some_feedback(problem, 1, 5, seed)._replace(log_prob=None)
    with raises_code("invalid-input"):
        policy.update(policy.init(problem, 1, rng), feedback, rng)
