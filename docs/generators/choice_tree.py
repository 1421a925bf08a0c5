"""The rules of ``submax recommend`` as a tree of questions, drawn by Mermaid."""

from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

from submax.recommendation.answers import GOALS, REWARDS, Answers
from submax.recommendation.condition import Limits
from submax.recommendation.rule_table import RuleTable

QUESTIONS = {
    "choose": "What is chosen?",
    "context": "Is there a context?",
    "rewards": "Which rewards?",
    "goal": "What matters?",
    "frequency": "How often is the reward 1?",
    "actions": "How many arms?",
    "batch": "Decisions in a batch?",
}
"""The questions in the order in which the tree asks them."""
FREQUENCIES = ("often", "seldom", "rare")
"""The words for rewards 0 and 1; the tree asks for the kind of the rewards first."""
SIZES: dict[str, tuple[int, ...]] = {"slots": (2, 3), "number": ()}
"""An example of each kind of action but arms, whose number is varied."""


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
        ("arms", *SIZES), GOALS, (False, True), REWARDS, batches
    ):
        for count in arms if choose == "arms" else [ANY_SIZE]:
            sizes = SIZES.get(choose, (count.example,))
            answers = Answers(sizes, context, rewards, batch.example, goal)
            words = {
                "choose": choose,
                "goal": goal,
                "context": "yes" if context else "no",
                "rewards": "0 or 1" if rewards in FREQUENCIES else rewards,
                "frequency": rewards if rewards in FREQUENCIES else "any",
                "actions": count.text,
                "batch": batch.text,
            }
            found.append(Cell(words, table.rule_for(answers).title("policy")))
    return found


class Span(NamedTuple):
    """A range of whole numbers, with one of them as an example."""

    text: str
    example: int


ANY_SIZE = Span("any", 0)


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
    """The flow chart: each question is asked only if its answer makes a difference."""
    lines = ["flowchart LR"]

    def draw(form: str) -> str:
        node = f"n{sum('-->' not in line for line in lines)}"
        lines.append(f"    {node}{form}")
        return node

    def draw_tree(tree: Shape) -> str:
        """Draw a policy or a question with what follows from it, and return its node."""
        if isinstance(tree, str):
            return draw(f'["{tree}"]')
        question, *answers = tree
        node = draw(f'{{"{QUESTIONS[question]}"}}')
        for words, part in answers:
            lines.append(f'    {node} -- "{" · ".join(words)}" --> {draw_tree(part)}')
        return node

    draw_tree(shape(cells(table), list(QUESTIONS)))
    return "\n".join(lines)


Shape = str | tuple[Any, ...]
"""What is drawn of some cells: a policy, or a question with its answers and their shapes."""


def shape(found: list[Cell], questions: Sequence[str]) -> Shape:
    """What is drawn of some cells, without the names of nodes."""
    policies = {cell.policy for cell in found}
    if len(policies) == 1:
        return policies.pop()
    question, *rest = questions
    groups = _groups(found, question, rest)
    if len(groups) == 1:
        return shape(found, rest)
    return question, *((tuple(words), shape(part, rest)) for words, part in groups)


def _groups(
    found: list[Cell], question: str, rest: Sequence[str]
) -> list[tuple[list[str], list[Cell]]]:
    """The cells by answer; answers after which the same is drawn are put together."""
    groups: dict[Shape, tuple[list[str], list[Cell]]] = {}
    for answer in dict.fromkeys(cell.words[question] for cell in found):
        part = [cell for cell in found if cell.words[question] == answer]
        groups.setdefault(shape(part, rest), ([], part))[0].append(answer)
    return list(groups.values())
