"""The rules of ``submax recommend`` as a tree of questions, drawn by Mermaid."""

from collections.abc import Sequence
from itertools import pairwise, product
from typing import NamedTuple

from submax.recommendation.answers import GOALS, REWARDS, Answers
from submax.recommendation.condition import Limits
from submax.recommendation.rule_table import RuleTable

QUESTIONS = {
    "choose": "What is chosen?",
    "goal": "What matters?",
    "context": "Is there a context?",
    "rewards": "Which rewards?",
    "actions": "How many arms?",
    "batch": "Decisions in a batch?",
}
"""The questions in the order in which the tree asks them."""
SIZES = {"arms": (10,), "slots": (2, 3), "number": ()}
"""An example of each kind of action; the sizes of arms are varied."""


class Cell(NamedTuple):
    """One combination of answers, in words, with the title of the policy for it."""

    words: dict[str, str]
    policy: str


def cells(table: RuleTable) -> list[Cell]:
    """All combinations of answers between which the rules can distinguish."""
    arms = _ranges([rule.when.actions for rule in table.rules], 2)
    batches = _ranges([rule.when.batch for rule in table.rules], 1)
    found = []
    for choose, goal, context, rewards, batch in product(
        SIZES, GOALS, (False, True), REWARDS, batches
    ):
        for count in arms if choose == "arms" else [SIZES_OF_OTHERS]:
            sizes = (count.example,) if choose == "arms" else SIZES[choose]
            answers = Answers(sizes, context, rewards, batch.example, goal)
            words = {
                "choose": choose,
                "goal": goal,
                "context": "yes" if context else "no",
                "rewards": rewards,
                "actions": count.text,
                "batch": batch.text,
            }
            found.append(Cell(words, table.rule_for(answers).title("policy")))
    return found


class Span(NamedTuple):
    """A range of whole numbers, with one of them as an example."""

    text: str
    example: int


SIZES_OF_OTHERS = Span("any", 0)


def _ranges(limits: Sequence[Limits], least: int) -> list[Span]:
    """The ranges between all limits."""
    starts = {least}
    for limit in limits:
        starts |= {limit.at_least} if limit.at_least else set()
        starts |= {limit.at_most + 1} if limit.at_most is not None else set()
    ends = sorted(starts)
    spans = [Span(f"{low} to {high - 1}", low) for low, high in pairwise(ends)]
    return [*spans, Span(f"{ends[-1]} or more", ends[-1])]


def mermaid(table: RuleTable) -> str:
    """The flow chart: each question is asked only if its answer makes a difference.

    Questions after which the same answers lead to the same policies are drawn once.
    """
    chart = _Chart()
    chart.grow(cells(table), list(QUESTIONS))
    return "\n".join(["flowchart LR", *chart.lines])


class _Chart:
    """The lines of a flow chart, and the nodes that are drawn, by what follows from them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._nodes: dict[tuple[Outcome, ...] | str, str] = {}

    def grow(self, found: list[Cell], questions: Sequence[str]) -> str:
        """Draw what follows from some cells, and return its node."""
        policies = {cell.policy for cell in found}
        if len(policies) == 1:
            return self._node(policies.pop(), '["<b>{}</b>"]')
        question, *rest = questions
        groups = _groups(found, question, rest)
        if len(groups) == 1:
            return self.grow(found, rest)
        key = outcomes(found, questions)
        if key in self._nodes:
            return self._nodes[key]
        node = self._node(key, f'{{{{"{QUESTIONS[question]}"}}}}')
        for words, part in groups:
            self.lines.append(f'    {node} -- "{" · ".join(words)}" --> {self.grow(part, rest)}')
        return node

    def _node(self, key: "tuple[Outcome, ...] | str", form: str) -> str:
        if key not in self._nodes:
            self._nodes[key] = f"n{len(self._nodes) + 1}"
            self.lines.append(f"    {self._nodes[key]}{form.format(key)}")
        return self._nodes[key]


Outcome = tuple[tuple[str, ...], str]
"""The answers to some questions, and the policy that follows."""


def outcomes(found: list[Cell], questions: Sequence[str]) -> tuple[Outcome, ...]:
    """What follows from some cells, by their answers to the questions."""
    return tuple((tuple(cell.words[one] for one in questions), cell.policy) for cell in found)


def _groups(
    found: list[Cell], question: str, rest: Sequence[str]
) -> list[tuple[list[str], list[Cell]]]:
    """The cells by answer; answers after which everything is the same are put together."""
    groups: dict[tuple[Outcome, ...], list[str]] = {}
    for answer in dict.fromkeys(cell.words[question] for cell in found):
        part = [cell for cell in found if cell.words[question] == answer]
        groups.setdefault(outcomes(part, rest), []).append(answer)
    return [
        (words, [cell for cell in found if cell.words[question] == words[0]])
        for words in groups.values()
    ]
