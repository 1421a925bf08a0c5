"""What the paper says about its choices in the CVAE, tested on the results of the ablations."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from submax.experiments.comparing.paired_comparison import Finals, PairedComparison, less_regret
from submax.experiments.statements.claim import Claim
from submax.experiments.statements.statement import Statement

Comparisons: TypeAlias = Callable[[Finals], Iterator[PairedComparison]]

INJECTION = (
    "Section 4.3, footnote: A naive alternative to the multiplicative injection layers is to "
    "concatenate r together with a and c. However, we find that in this way r can be ignored in "
    "later layers in the neural network, making the learned reward-conditioned policy insensitive "
    "to r."
)
OF_THE_PAPER = {
    "Modulation has less regret than concatenating r to the input": (
        "reference",
        "input-concatenation",
    ),
    "With r concatenated to the input, SubMax is no better than random": (
        "random",
        "input-concatenation",
    ),
}
"""What the paper says: the policy that has less regret, and the other."""
OF_SUBMAX = {
    "Modulation has less regret than concatenation in both layers that starts at zero": (
        "reference",
        "concatenation",
    ),
    "Modulation has less regret than a sigmoid gate": ("reference", "gate"),
    "Latent draws that the reward levels share give less regret than separate draws": (
        "reference",
        "separate-draws",
    ),
    "5 latent draws have less regret than 1": ("reference", "draws-1"),
    "20 latent draws have less regret than 5": ("draws-20", "reference"),
}
"""What we ask beside it, in the same form."""


def ablation_statements(finals: Finals) -> list[Statement]:
    """The statements about injection layers and latent draws, in every configuration."""
    wanted = len(finals.configurations())
    claims = [
        *(
            Claim("paper", INJECTION, text, wanted, _less(*two))
            for text, two in OF_THE_PAPER.items()
        ),
        *(Claim("submax", "", text, wanted, _less(*two)) for text, two in OF_SUBMAX.items()),
    ]
    return [claim.tested(finals) for claim in claims]


def _less(lower: str, higher: str) -> Comparisons:
    return lambda finals: less_regret(finals, lower, higher, _words)


def _words(labels: dict[str, Any]) -> str:
    return f"s={labels['shift']}"
