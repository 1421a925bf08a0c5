"""The statements of each section of the paper."""

from collections.abc import Callable

from submax.experiments.comparing.paired_comparison import Finals
from submax.experiments.statements.ablation_statements import ablation_statements
from submax.experiments.statements.bernoulli_statements import bernoulli_statements
from submax.experiments.statements.combinatorial_statements import combinatorial_statements
from submax.experiments.statements.contextual_statements import contextual_statements
from submax.experiments.statements.statement import Statement

SECTIONS: dict[str, Callable[[Finals], list[Statement]]] = {
    "section 4.1": bernoulli_statements,
    "section 4.2": contextual_statements,
    "section 4.3": combinatorial_statements,
    "ablations": ablation_statements,
}


def statements_of(section: str, finals: Finals) -> list[Statement]:
    """The statements of a section with their comparisons; none if the section is empty."""
    return SECTIONS[section](finals) if section else []
