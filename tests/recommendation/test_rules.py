"""Every rule can be reached, its policies work, and its numbers are the published ones."""

import csv
import dataclasses
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import submax
from submax import (
    Arms,
    Binary,
    Box,
    Continuous,
    Counts,
    Discrete,
    Feedback,
    Problem,
    Slots,
    Training,
)
from submax.recommendation.answers import GOALS, REWARDS, Answers
from submax.recommendation.published_evidence import COLUMNS
from submax.recommendation.rule_table import rule_table

ROOT = Path(__file__).parents[2]
TABLE = rule_table()
GRID = [
    Answers(sizes, context, rewards, batch, goal)
    for sizes, context, rewards, batch, goal in product(
        [(2,), (3,), (40,), (300,), (1000,), (2, 3), ()],
        (False, True),
        REWARDS,
        (1, 100, 500, 2000),
        GOALS,
    )
]
SCALES = {
    "ratings": Discrete((1.0, 2.0, 3.0, 4.0, 5.0)),
    "numbers": Continuous(),
    "counts": Counts(),
    "sparse-counts": Counts(),
}


def test_every_answer_has_a_rule_and_every_rule_is_reached():
    assert {TABLE.rule_for(answers).name for answers in GRID} == {one.name for one in TABLE.rules}


def test_every_caveat_is_reached():
    reached = {text for answers in GRID for text in TABLE.caveats_for(answers)}
    assert reached == {one.text for one in TABLE.caveats}


def test_every_table_has_a_title():
    for rule in TABLE.rules:
        for which in ("policy", "runner_up"):
            is_table = not isinstance(getattr(rule, which), str)
            assert is_table == bool(getattr(rule, f"{which}_title")), rule.name


def test_names_are_unique_and_all_evidence_is_used():
    names = [rule.name for rule in TABLE.rules]
    assert len(set(names)) == len(names)
    assert {name for rule in TABLE.rules for name in rule.evidence} == set(TABLE.evidence)


def problem_of(answers: Answers) -> Problem:
    space = {
        "arms": lambda: Arms(answers.actions),
        "slots": lambda: Slots(answers.sizes),
        "number": lambda: Box((1.0,), (10.0,)),
    }[answers.choose]()
    return Problem(space, 2 if answers.context else 0, SCALES.get(answers.rewards, Binary()))


def examples_of_rules(networks: bool):
    """Of every policy, the smallest problem of each kind that leads to it."""
    found = {}
    for answers in sorted(GRID, key=lambda one: one.actions):
        rule = TABLE.rule_for(answers)
        problem = problem_of(answers)
        for which in ("policy", "runner_up"):
            policy, trains = getattr(rule, which), which in rule.extras
            kind = (str(policy), answers.choose, problem.context_width > 0, str(problem.scale)[:8])
            if trains == networks:
                # To compile a network takes seconds, and other problems compile nearly the same.
                key = kind[:1] if networks else kind
                found.setdefault(key, (policy, problem, f"{rule.name}-{which}"))
    return [pytest.param(*one[:2], id=one[2]) for one in found.values()]


def decides_and_learns(policy, problem, rng):
    state = policy.init(problem, 1, rng)
    context = rng.normal(size=(1, 20, problem.context_width))
    action, log_prob = policy.act(state, context, rng)
    if log_prob is None:
        log_prob = policy.log_prob(state, context, action)
    reward = rng.integers(1, 3, size=(1, 20)).astype(float)
    if problem.scale == Binary():
        reward -= 1.0
    feedback = Feedback(context, action, reward, log_prob, np.ones((1, 20)))
    state = policy.update(state, feedback, rng)
    assert np.isfinite(policy.act(state, context, rng)[0]).all()


@pytest.mark.parametrize(("specification", "problem"), examples_of_rules(networks=False))
def test_policies_decide_and_learn(specification, problem, seed):
    rng = np.random.default_rng([seed, 1])
    decides_and_learns(submax.make_policy(specification), problem, rng)


@pytest.mark.slow
@pytest.mark.parametrize(("specification", "problem"), examples_of_rules(networks=True))
@pytest.mark.usefixtures("short_training")
def test_networks_decide_and_learn(specification, problem, seed):
    rng = np.random.default_rng([seed, 1])
    decides_and_learns(few_steps(submax.make_policy(specification)), problem, rng)


def few_steps(part):
    """The same policy, whose networks are trained for two steps."""
    changed = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if isinstance(value, Training):
            changed[field.name] = Training(steps=2)
        elif dataclasses.is_dataclass(value):
            changed[field.name] = few_steps(value)
    return dataclasses.replace(part, **changed)


def test_network_policies_take_every_problem_that_leads_to_them():
    for answers in GRID:
        rule = TABLE.rule_for(answers)
        for which in rule.extras:
            policy = submax.make_policy(getattr(rule, which))
            if answers.actions < 10 and answers.batch == 1:
                policy.init(problem_of(answers), 1, np.random.default_rng(0))


@pytest.mark.parametrize("name", TABLE.evidence)
def test_the_page_and_its_heading_exist(name):
    page, _, heading = TABLE.evidence[name].page.partition("#")
    text = (ROOT / page).read_text(encoding="utf-8")
    if heading:
        titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in titles}
        assert heading in anchors


def published_rows(evidence):
    """The rows of the published file that the evidence is about, with all policies."""
    with (ROOT / evidence.data).open(encoding="utf-8", newline="") as file:
        return [
            row
            for row in csv.DictReader(file)
            if all(row[key] == value for key, value in evidence.where.items())
        ]


@pytest.mark.parametrize("name", [name for name, one in TABLE.evidence.items() if one.data])
def test_numbers_are_those_of_the_published_file(name):
    evidence = TABLE.evidence[name]
    rows = published_rows(evidence)
    column = COLUMNS[evidence.measure]
    error = column.replace("_mean", "_standard_error")
    for policy, numbers in evidence.numbers.items():
        (row,) = [one for one in rows if one["policy"] == policy]
        published = [float(row[key]) for key in (column, error)]
        # A number with one decimal is at most half of that away.
        assert np.allclose(numbers, published, atol=0.0501, rtol=0), (policy, published)


@pytest.mark.parametrize("name", [name for name, one in TABLE.evidence.items() if one.data])
def test_numbers_are_listed_from_the_best_to_the_worst(name):
    evidence = TABLE.evidence[name]
    means = [mean for mean, _ in evidence.numbers.values()]
    assert means == sorted(means, reverse=evidence.measure == "reward")


@pytest.mark.parametrize("name", [name for name, one in TABLE.evidence.items() if one.sentence])
def test_sentences_have_the_numbers_of_their_page(name):
    evidence = TABLE.evidence[name]
    page = (ROOT / evidence.page.partition("#")[0]).read_text(encoding="utf-8")
    quoted = " ".join(evidence.quotes)
    for quote in evidence.quotes:
        assert quote in page, quote
    for number in re.findall(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])", evidence.sentence):
        assert number in quoted or number in ("27",), number


def test_shares_in_the_reasons_are_those_of_the_evidence():
    """A decimal number in a reason stands in a quote of the same rule."""
    for rule in TABLE.rules:
        quoted = " ".join(quote for name in rule.evidence for quote in TABLE.evidence[name].quotes)
        for number in re.findall(r"(?<![\w-])0\.\d{3,}", rule.reason + rule.runner_up_reason):
            assert number in quoted, (rule.name, number)


PUBLISHED_AS = {
    "drift": "rcp-submax, discount 0.99",
    "drift-with-context": "from scratch, window 5000",
    "sparse-counts": "rcp-advantage, 8 levels",
}
"""The names that published files give to policies that are tables."""


def best_of(evidence):
    """The best policy among all rows of the published file, and those that were run there."""
    column = COLUMNS[evidence.measure]
    rows = published_rows(evidence)
    best = (max if evidence.measure == "reward" else min)(rows, key=lambda row: float(row[column]))
    return best["policy"], {row["policy"] for row in rows}


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        pytest.param(rule, name, id=f"{rule.name}-{name}")
        for rule in TABLE.rules
        for name in rule.evidence
        if TABLE.evidence[name].data
    ],
)
def test_a_rival_that_was_ahead_is_named(rule, name):
    """If a policy of the published file beats the recommended one, the rule names the best one."""
    best, run = best_of(TABLE.evidence[name])
    policy = PUBLISHED_AS.get(rule.name, rule.policy)
    if policy not in run or best == policy:
        return
    texts = " ".join((rule.reason, rule.runner_up_reason, *rule.untested))
    assert best == rule.runner_up or f"`{best}`" in texts
    assert best in TABLE.evidence[name].numbers, "its number is shown"


def test_the_names_of_tables_are_published():
    tables = {rule.name: rule for rule in TABLE.rules if not isinstance(rule.policy, str)}
    assert set(tables) == set(PUBLISHED_AS)
    for name, published_as in PUBLISHED_AS.items():
        for one in tables[name].evidence:
            assert published_as in TABLE.evidence[one].numbers
