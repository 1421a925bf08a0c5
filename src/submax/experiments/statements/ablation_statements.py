"""What the paper says about its choices in the CVAE, tested on the results of the ablations."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from submax.experiments.paired_comparison import Finals, PairedComparison, less_regret
from submax.experiments.statements.claim import Claim
from submax.experiments.statements.statement import Statement

Comparisons: TypeAlias = Callable[[Finals], Iterator[PairedComparison]]

INJECTION = (
    "Section 4.3, footnote: A naive alternative to the multiplicative injection layers is to "
    "concatenate r together with a and c. However, we find that in this way r can be ignored in "
    "later layers in the neural network, making the learned reward-conditioned policy insensitive "
    "to r."
)


def _less(lower: str, higher: str) -> Comparisons:
    return lambda finals: less_regret(finals, lower, higher, _words)


def _words(labels: dict[str, Any]) -> str:
    return f"s={labels['shift']}"


def ablation_statements(finals: Finals) -> list[Statement]:
    """The statements about injection layers and latent draws, in every configuration."""
    wanted = len(finals.configurations())
    claims = [
        Claim(
            "paper",
            INJECTION,
            "Modulation has less regret than concatenating r to the input",
            wanted,
            _less("reference", "input-concatenation"),
        ),
        Claim(
            "paper",
            INJECTION,
            "With r concatenated to the input, SubMax is no better than random",
            wanted,
            _less("random", "input-concatenation"),
        ),
        Claim(
            "submax",
            "",
            "Modulation has less regret than concatenation in both layers that starts at zero",
            wanted,
            _less("reference", "concatenation"),
        ),
        Claim(
            "submax",
            "",
            "Modulation has less regret than a sigmoid gate",
            wanted,
            _less("reference", "gate"),
        ),
        Claim(
            "submax",
            "",
            "Latent draws that the reward levels share give less regret than separate draws",
            wanted,
            _less("reference", "separate-draws"),
        ),
        Claim(
            "submax",
            "",
            "5 latent draws have less regret than 1",
            wanted,
            _less("reference", "draws-1"),
        ),
        Claim(
            "submax",
            "",
            "20 latent draws have less regret than 5",
            wanted,
            _less("draws-20", "reference"),
        ),
    ]
    return [claim.tested(finals) for claim in claims]
