"""The page about choosing a policy is written from the rules that the command uses."""

import re
from pathlib import Path

import pytest

from submax.recommendation.rule_table import rule_table

GENERATORS = Path(__file__).parents[2] / "docs" / "generators"


@pytest.fixture(autouse=True)
def _generators(monkeypatch):
    monkeypatch.syspath_prepend(str(GENERATORS))


def test_the_page_is_current():
    import choice_page

    written = choice_page.PAGE.read_text(encoding="utf-8")
    assert written == choice_page.with_tables(written), "run: make docs"


def test_the_tree_leads_to_every_policy():
    import choice_tree

    text = choice_tree.mermaid(rule_table())
    leaves = re.findall(r'\["(.*?)"\]', text)
    assert set(leaves) == {one.title("policy") for one in rule_table().rules}


def test_a_path_through_the_tree_ends_at_the_policy_for_its_answers():
    import choice_tree

    table = rule_table()
    text = choice_tree.mermaid(table)
    edges = re.findall(r'(n\d+) -- "(.*?)" --> (n\d+)', text)
    asked = dict(re.findall(r'(n\d+)\{"(.*?)"\}', text))
    ends = dict(re.findall(r'(n\d+)\["(.*?)"\]', text))
    words = {sentence: word for word, sentence in choice_tree.QUESTIONS.items()}
    (node,) = {begin for begin, _, _ in edges} - {end for _, _, end in edges}
    for cell in choice_tree.cells(table):
        at = node
        while at in asked:
            answer = cell.words[words[asked[at]]]
            (at,) = [
                end for begin, labels, end in edges if begin == at and answer in labels.split(" · ")
            ]
        assert ends[at] == cell.policy
