"""What pages say of a bandit: now and over the whole time, segments, single decisions, learning."""

import re
from pathlib import Path

import pytest
from refusals import raises_code

from submax.core.errors import NotFoundError
from submax.server.pages.routes import template_environment
from submax.server.pages.views import (
    OTHERS,
    arms_page,
    bandit_row,
    cells_of,
    crossed,
    decisions_page,
    health,
    overview,
    settings_page,
    share_chart,
)

GLOSSARY = Path(__file__).parents[2] / "docs/reference/glossary.md"
TEMPLATES = Path(__file__).parents[2] / "src/submax/server/templates"
CONTEXTS = {"device": ["phone", "desk"], "country": ["de", "fr"]}


@pytest.fixture
def play(rng, clock):
    """Let a bandit decide once a minute, with a chance of a reward for each arm and context."""

    def play(bandit, minutes, chance, decisions=40, contexts=None):
        for _ in range(minutes):
            known = [contexts(rng) if contexts else {} for _ in range(decisions)]
            made = bandit.decide_many(
                [{"context": one} for one in known] if contexts else [{}] * decisions
            )
            bandit.reward_many(
                [
                    {"id": one.id, "value": float(rng.random() < chance(one.action, context))}
                    for one, context in zip(made, known, strict=True)
                ]
            )
            clock.now += 60
            bandit.refit()

    return play


FORGETTING = {
    "kind": "reward-conditioned",
    "strategy": "submax",
    "estimator": {"kind": "counting", "memory": {"discount": 0.99}},
}
USUAL = "rcp-adaptive"
QUICK = {"reward_wait": 5, "default_reward": 0.0}


def test_after_a_change_of_taste_the_overview_says_what_is_best_now(opened, play):
    bandit = opened(policy=FORGETTING, guard_rails={"minimum": 0.05}, **QUICK)
    play(bandit, 150, lambda arm, _: {"A": 0.6, "B": 0.1, "C": 0.2}[arm])
    page = overview(bandit)
    assert page.arms[0].name == "A"
    assert page.sentences[0].startswith("Now: 'A'")
    play(bandit, 40, lambda arm, _: {"A": 0.1, "B": 0.7, "C": 0.2}[arm])
    page = overview(bandit)
    now = page.arms[0]
    assert now.name == "B"
    assert now.share_now > 0.5 > now.of.share
    assert page.sentences[0].startswith("Now: 'B'")
    whole_time = {one.name: one.of.reward_rate for one in page.arms}
    assert max(whole_time, key=whole_time.get) == "A"
    # A colour is that of the arm, whatever is shown first.
    assert {one.name: one.colour for one in page.arms} == {"A": 0, "B": 1, "C": 2}
    assert {line.name: line.colour for line in page.shares.lines} == {"A": 0, "B": 1, "C": 2}


LIKED = {("phone", "de"): "A", ("phone", "fr"): "B", ("desk", "de"): "B", ("desk", "fr"): "B"}


def test_a_personalised_bandit_says_who_gets_what(opened, play):
    bandit = opened(
        actions=["A", "B"], context=CONTEXTS, policy=USUAL, guard_rails={"minimum": 0.1}, **QUICK
    )

    def visitor(rng):
        return {name: str(rng.choice(values)) for name, values in CONTEXTS.items()}

    def chance(arm, context):
        return 0.8 if arm == LIKED[context["device"], context["country"]] else 0.1

    play(bandit, 12, chance, 120, visitor)
    assert overview(bandit).sentences == [
        "Different visitors can get different arms: see Arms and segments."
    ]
    page = arms_page(bandit)
    assert page.personalised
    assert {page.first, page.second} == {"device", "country"}
    table = crossed(bandit, "device", "country")
    found = {
        (row.name, column): cell
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    }
    assert {place: cell.arms[0].choice for place, cell in found.items()} == LIKED
    assert sum(cell.decisions for cell in found.values()) == 12 * 120
    one = found["phone", "de"]
    assert sum(arm.share for arm in one.arms) == pytest.approx(1)
    assert one.arms[0].low < one.arms[0].rate < one.arms[0].high
    assert crossed(bandit, "device", None).columns == []
    with pytest.raises(NotFoundError):
        arms_page(bandit, first="nothing")
    with raises_code("invalid-input", "second"):
        arms_page(bandit, first="device", second="device")


@pytest.mark.parametrize("span", [None, "hour", "day", "week", "month", "year", "all"])
def test_charts_of_every_range_have_all_decisions_and_shares_of_one(opened, play, span):
    rails = {"holdout": 0.3, "baseline": "A"}
    bandit = opened(policy="random", guard_rails=rails, **QUICK)
    play(bandit, 20, lambda arm, _: 0.5)
    times = cells_of(bandit, span)
    assert sum(cell.sums.decisions for cell in times.cells) == 20 * 40
    chart = share_chart(times, ["A", "B", "C"])
    for column in zip(*(line.values for line in chart.lines), strict=True):
        assert None in column or sum(column) == pytest.approx(1)
    rewards = sum(cell.sums.reward for cell in times.cells)
    assert rewards == pytest.approx(sum(one.reward for one in bandit.read.totals().values()))


def test_of_many_arms_the_most_frequent_are_shown(opened):
    names = [f"arm {number}" for number in range(250)]
    bandit = opened(actions=names, policy="random", reward_wait=0)
    for _ in range(2):
        bandit.decide_many([{}] * 1000)
    chart = share_chart(cells_of(bandit, None), names)
    assert len(chart.lines) == 9
    assert chart.lines[-1].name == OTHERS
    page = arms_page(bandit)
    assert (len(page.arms), page.total) == (100, 250)
    counts = sorted((one.decisions for one in bandit.arms()), reverse=True)
    assert [one.decisions for one in page.arms] == counts[:100]


def test_slots_are_shown_one_by_one(opened):
    slots = {"title": ["A", "B"], "colour": ["red", "blue"]}
    bandit = opened(actions=slots, policy=USUAL, reward_wait=0)
    made = bandit.decide_many([{}] * 50)
    bandit.reward_many([{"id": one.id, "value": 1.0} for one in made])
    for slot, choices in (("title", {"A", "B"}), ("colour", {"red", "blue"})):
        assert {one.choice for one in arms_page(bandit, slot).arms} == choices
        assert {one.name for one in overview(bandit, None, slot).arms} == choices
    with pytest.raises(NotFoundError):
        arms_page(bandit, "none")
    assert "title" in overview(bandit).sentences[0]


# Single decisions


@pytest.fixture
def bandit(opened):
    fields = {"age": float, "device": ["phone", "desk"]}
    declared = {"actions": ["A", "B"], "context": fields, "policy": USUAL}
    return opened(**declared, reward_wait=60, quarantine=100, seed=1)


def decided(bandit, count: int = 1, **more):
    context = {"age": 3.0, "device": "desk"}
    return bandit.decide_many([{"context": context, **more}] * count)


def test_a_decision_is_shown_with_its_context_and_what_could_have_been_chosen(bandit, clock):
    for one in decided(bandit, 200):
        bandit.reward(one.id, float(one.action == "A"))
    clock.now += 100
    bandit.refit()
    one = decided(bandit, id="visit-1", unit="ann")[0]
    page = decisions_page(bandit, "visit-1").decision
    shown = page.found
    assert shown.context == {"age": 3.0, "device": "desk"}
    assert (shown.action, shown.version, shown.unit) == (one.action, 1, "ann")
    assert sum(row.probability for row in page.actions) == pytest.approx(1)
    assert [row.action for row in page.actions if row.taken] == [one.action]


def test_unknown_categories_are_told_once(bandit):
    bandit.decide({"age": 3.0, "device": "watch"})
    assert sum("unknown categories" in one for one in overview(bandit).alerts) == 1


def test_decisions_of_a_unit_are_listed_newest_first(bandit):
    decided(bandit, 30)
    first = decided(bandit, unit="ann")[0]
    second = decided(bandit, unit="ann")[0]
    decided(bandit, 40)
    assert [one.id for one in decisions_page(bandit, "", "ann").newest] == [second.id, first.id]
    assert len(decisions_page(bandit).newest) == 25
    assert "bob" in decisions_page(bandit, "", "bob").problem


def test_an_id_that_is_not_there_is_told(bandit):
    decided(bandit)
    bandit.reward("later", 1.0)
    for asked, word in {
        "no-such-id": "complete",
        "two words": "'two words'",
        "x" * 200: "128",
        "later": "quarantine",
    }.items():
        page = decisions_page(bandit, asked)
        assert word in page.problem
        assert page.decision is None
    assert [one.id for one in health(bandit).quarantined] == ["later"]


# Settings and words


def test_terms_of_templates_are_those_of_the_glossary():
    used = set()
    for template in TEMPLATES.glob("*.html"):
        used |= set(re.findall(r'parts\.term\("([^"]+)"', template.read_text()))
    assert used
    terms = template_environment().get_template("parts.html").module.terms
    assert used <= set(terms)
    rows = dict(re.findall(r"^\| ([^|]+) \| (.+) \|$", GLOSSARY.read_text(), re.MULTILINE))
    assert {word: rows.get(word) for word in terms} == terms


def test_an_empty_bandit_has_all_pages(opened):
    prices = {"actions": {"price": [0.0, 1.0]}, "policy": "random"}
    for number, declared in enumerate(({}, {"context": CONTEXTS, "policy": USUAL}, prices)):
        bandit = opened(name=f"b{number}", **declared)
        for page in (overview, arms_page, decisions_page, health, settings_page, bandit_row):
            assert page(bandit).name == bandit.name
