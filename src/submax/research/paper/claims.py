"""The paper's claims, section by section, tested on the results of a sweep."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from submax.core.numerics import standard_error
from submax.research.paper.bernoulli_claims import bernoulli_statements
from submax.research.paper.statements import (
    IMPROVED,
    Comparisons,
    PairedComparison,
    Statement,
    best_elsewhere,
    claims_of,
    compared,
    ranked,
    share_of_random,
)
from submax.simulation.compare import Finals, Side
from submax.simulation.results import FINAL_TABLE, ResultTable, write_csv

RANDOM = (
    "Section 3.3: all policies except the 0-reward policy or negative policy achieves better than "
    "random expected reward."
)
ORDER = (
    "Section 3.3: the optimistic policy, equivalently the 1-conditioned policy, which does not use "
    "the negative policy, is the worst among the rest. Optimized policy perform better than the "
    "optimistic one […]. Unexpectedly, the SubMax policy works the best."
)
ZEROED = (
    'Section 3.3: the optimized policy […] in general can only "zero out" one action […], while '
    "the SubMax operation can potentially zero out more."
)


def illustration_statements(directory: Path) -> list[Statement]:
    """Return the statements of section 3.3, each with its comparisons of two policies.

    The values are means over environments. Each comparison has the policy on the left that should
    have the lower mean.
    """
    rewards, zeroed = (_sides(directory, name) for name in ("expected_reward", "zeroed_actions"))
    names = ["rcp-optimistic", "rcp-optimized", "rcp-submax"]
    zeros = "actions with probability 0"
    return [
        Statement(
            "paper",
            RANDOM,
            "The negative policy earns less than random, the three others more",
            wanted=4,
            comparisons=[
                *_ordered(rewards, ["rcp-negative", "random"]),
                *(one for name in names for one in _ordered(rewards, ["random", name])),
            ],
        ),
        Statement(
            "paper",
            ORDER,
            "Expected reward rises from optimistic to optimized to SubMax",
            wanted=2,
            comparisons=list(_ordered(rewards, names)),
        ),
        Statement(
            "paper",
            ZEROED,
            "The optimized policy zeroes fewer actions than SubMax",
            wanted=1,
            comparisons=list(
                compared(zeros, zeroed.get("rcp-optimized"), zeroed.get("rcp-submax"))
            ),
        ),
    ]


def _sides(directory: Path, column: str) -> dict[str, Side]:
    """Return the values of every policy in all environments, as sides of comparisons."""
    policies = ResultTable.read(directory, FINAL_TABLE).by_policy()
    return {name: Side(name, rows[column]) for name, rows in policies.items()}


def _ordered(sides: dict[str, Side], names: Sequence[str]) -> Iterator[PairedComparison]:
    """Compare the expected rewards of neighbours in ``names``, which should rise."""
    for lower, higher in pairwise(names):
        yield from compared("expected reward", sides.get(lower), sides.get(higher))


CLASSIC = [
    *(f"neural-epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)),
    "dropout-thompson",
]
"""The paper's classic methods, with a value network."""
OTHERS = [*CLASSIC, "linucb", "linear-thompson", "neural-ucb", "neural-thompson"]
TILTED = [f"rcp-tilted-{temperature}" for temperature in (0.5, 2, 8)]
"""The marginalized policy with a target tilted towards high rewards, by temperature."""
WITHOUT_CONTEXT = ["rcp-counting-submax", "thompson-1-1"]
"""Policies that do not look at the context."""
SHIFTS = (0, -2, -4)

DENSE = (
    "Section 4.2: while classic methods perform better in a dense reward setting, their "
    "performance degrade a lot when the rewards become sparse."
)
ROBUST = (
    "Section 4.2: RCPs, on the other side, are more robust to the sparsity in reward, rendering "
    "RCPs with SubMax being the best in the highest sparsity setup."
)


def _degrade(finals: Finals) -> Iterator[PairedComparison]:
    for policy in CLASSIC:
        yield from compared(policy, _relative(finals, policy, 0), _relative(finals, policy, -4))


def _robust(policy: str) -> Comparisons:
    """Compare the regret relative to random that is added from s=0 to s=-4."""

    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        own = _added(_relative(finals, policy, 0), _relative(finals, policy, -4))
        dense, sparse = (
            best_elsewhere([_relative(finals, name, shift) for name in CLASSIC])
            for shift in (0, -4)
        )
        rival = _added(dense, sparse)
        yield from compared(
            "added share of random's regret",
            None if own is None else Side(policy, own.values),
            None if rival is None else Side("best classic", rival.values),
        )

    return comparisons


def _words(labels: dict[str, Any]) -> str:
    return f"s={labels['shift']}"


def _less(lower: list[str], higher: list[str], **where: Sequence[int]) -> Comparisons:
    """Claim that the best of one family has less regret than the best of another."""
    return ranked(lower, higher, _words, where)


PAPER_REWARDS = {
    "random": 0.0816,
    "rcp-negative": 0.077,
    "rcp-positive": 0.131,
    "rcp-optimized": 0.136,
    "rcp-optimistic": 0.131,
    "rcp-submax": 0.157,
}
"""The expected rewards in the one environment of the paper's illustration."""


def _two_thirds(finals: Finals) -> Iterator[PairedComparison]:
    for shift in SHIFTS[:2]:
        random = finals.final("random", shift=shift)
        less = None if random is None else Side("2/3 random", random.values * 2 / 3)
        yield from compared(f"s={shift}", finals.final("rcp-submax", shift=shift), less)


def _relative(finals: Finals, policy: str, shift: int) -> Side | None:
    found, random = finals.final(policy, shift=shift), finals.final("random", shift=shift)
    return share_of_random(f"{policy} s={shift}", found, random)


def _added(dense: Side | None, sparse: Side | None) -> Side | None:
    if dense is None or sparse is None:
        return None
    return Side(sparse.name, sparse.values - dense.values)


CLAIMS = claims_of(
    {
        DENSE: [
            (
                "The best classic method has less regret than SubMax at s=0",
                1,
                _less(CLASSIC, ["rcp-submax"], shift=[0]),
            ),
            ("Classic methods lose, relative to random, from s=0 to s=-4", len(CLASSIC), _degrade),
        ],
        ROBUST: [
            ("SubMax loses less than the best classic method does", 1, _robust("rcp-submax")),
            (
                "Optimistic loses less than the best classic method does",
                1,
                _robust("rcp-optimistic"),
            ),
            (
                "SubMax is the best method of the paper at s=-4",
                1,
                _less(["rcp-submax"], [*CLASSIC, "rcp-optimistic", "random"], shift=[-4]),
            ),
        ],
        IMPROVED: [
            (
                "SubMax has less regret than optimistic",
                len(SHIFTS),
                _less(["rcp-submax"], ["rcp-optimistic"]),
            ),
            (
                "SubMax has less regret than the marginalized policy, whose target is "
                "the observed rewards",
                len(SHIFTS),
                _less(["rcp-submax"], ["rcp-marginalized"]),
            ),
            (
                "SubMax has less regret than the marginalized policy with the best tilted target",
                len(SHIFTS),
                _less(["rcp-submax"], TILTED),
            ),
        ],
    },
    [
        (
            "SubMax is also ahead of the other baselines at s=-4",
            1,
            _less(["rcp-submax"], OTHERS, shift=[-4]),
        ),
        (
            "SubMax with a CVAE has less regret than the best policy without context",
            len(SHIFTS),
            _less(["rcp-submax"], WITHOUT_CONTEXT),
        ),
        (
            "Optimized, which the paper does not run here, has less regret than optimistic",
            len(SHIFTS),
            _less(["rcp-optimized"], ["rcp-optimistic"]),
        ),
        ("SubMax has less than two thirds of random's regret (s=0, -2)", 2, _two_thirds),
    ],
)
"""What is tested: first the statements of the paper, then ours."""


def contextual_statements(finals: Finals) -> list[Statement]:
    """The statements of section 4.2, each with its comparisons."""
    return [claim.tested(finals) for claim in CLAIMS]


COMBINATORIAL_CLASSIC = [
    *(f"climbing-epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)),
    "climbing-dropout-thompson",
]
"""The paper's classic methods with a value network; they search joint actions by hill climbing."""


CHANCE = (
    "Section 4.3: RCPs with both strategies can be successfully applied to this MAB setting with "
    "an action space of cardinality 32768, yielding better than chance performance."
)
BETWEEN = (
    "Section 4.3: Between the two strategies, the SubMax strategy still consistently works better "
    "than the optimistic strategy."
)
OUTPERFORM = (
    "Introduction: on MAB with large action spaces and sparse reward signals, we show that RCPs "
    "implemented by conditional variational autoencoders (CVAEs) with the proposed techniques can "
    "outperform classic methods (section 4.3, which has no classic method)."
)


def _earns_more(higher: str, *rivals: str) -> Comparisons:
    """Claim that a policy earns more than the best of its rivals."""
    return ranked(list(rivals), [higher], lambda labels: "accumulated reward", {}, "reward")


COMBINATORIAL_CLAIMS = claims_of(
    {
        CHANCE: [
            ("Optimistic earns more than chance", 1, _earns_more("rcp-optimistic", "random")),
            ("SubMax earns more than chance", 1, _earns_more("rcp-submax", "random")),
        ],
        BETWEEN: [
            ("SubMax earns more than optimistic", 1, _earns_more("rcp-submax", "rcp-optimistic"))
        ],
        OUTPERFORM: [
            (
                "SubMax earns more than the best of neural ε-greedy and dropout Thompson",
                1,
                _earns_more("rcp-submax", *COMBINATORIAL_CLASSIC),
            )
        ],
    },
    [
        (
            "SubMax earns more than hill climbing with Thompson sampling",
            1,
            _earns_more("rcp-submax", "hill-climbing-thompson"),
        ),
        (
            "The default rcp-adaptive earns more than SubMax with a CVAE",
            1,
            _earns_more("rcp-adaptive", "rcp-submax"),
        ),
    ],
)
"""What is tested: first the statements of the paper, then ours."""


def combinatorial_statements(finals: Finals) -> list[Statement]:
    """Return the statements of section 4.3, tested by the accumulated rewards of policies.

    Each comparison has the policy on the left that should earn less.
    """
    return [claim.tested(finals) for claim in COMBINATORIAL_CLAIMS]


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
    "3 latent draws have less regret than 1": ("draws-3", "draws-1"),
    "20 latent draws have less regret than 5": ("draws-20", "reference"),
    "The tuned KL weight has less regret than the paper's 0.5": ("reference", "kl-0.5"),
    "A KL weight of 0.5 has less regret than none": ("kl-0.5", "kl-0"),
}
"""What we ask beside it, in the same form."""


def ablation_statements(finals: Finals) -> list[Statement]:
    """The statements about injection layers and latent draws, in every configuration."""
    wanted = len(finals.configurations())
    of_paper, ours = (
        [(text, wanted, _less([lower], [higher])) for text, (lower, higher) in of.items()]
        for of in (OF_THE_PAPER, OF_SUBMAX)
    )
    return [claim.tested(finals) for claim in claims_of({INJECTION: of_paper}, ours)]


PAPER_MEANS: dict[str, dict[str, float]] = {
    "section 4.2": {"shift=0": 0.501, "shift=-2": 0.123, "shift=-4": 0.0185},
    "section 4.3": {"shift=-3": 0.0483},
}
"""The mean reward of random choice, E[R̄], that the paper gives for each environment."""
PAPER_ENVIRONMENTS = {"section 4.2": 50, "section 4.3": 20}
"""The number of environments over which the paper averages."""


class EnvironmentCheck(NamedTuple):
    """The mean reward of random choice, E[R̄], in our environments and in those of the paper.

    ``error`` is the standard error of the difference; both averages are over random environments.
    """

    where: str
    mean: float
    paper: float
    error: float

    @property
    def distance(self) -> float:
        """The difference in standard errors."""
        difference = self.mean - self.paper
        return difference / self.error if self.error > 0 else math.copysign(math.inf, difference)


def environment_checks(
    section: str, finals: Finals, observations: int
) -> Iterator[EnvironmentCheck]:
    """A check for every environment that is in the paper's section and in the results."""
    for where, paper in PAPER_MEANS.get(section, {}).items():
        key, value = where.split("=")
        found = finals.reward("random", **{key: int(value)})
        if found is not None and len(found.values) > 1:
            mean = found.values / observations
            ours = standard_error(mean)
            # The paper gives no error: we assume our spread and its number of environments.
            theirs = ours * math.sqrt(len(mean) / PAPER_ENVIRONMENTS[section])
            yield EnvironmentCheck(where, float(mean.mean()), paper, math.hypot(ours, theirs))


def write_environment_checks(directory: Path, found: list[EnvironmentCheck]) -> None:
    """Write the checks as calibration.csv; no file if there are none."""
    rows = [{**one._asdict(), "distance": one.distance} for one in found]
    if rows:
        write_csv(directory / "calibration.csv", rows)


SECTIONS: dict[str, Callable[[Finals], list[Statement]]] = {
    "section 4.1": bernoulli_statements,
    "section 4.2": contextual_statements,
    "section 4.3": combinatorial_statements,
    "ablations": ablation_statements,
}


def statements_of(section: str, finals: Finals) -> list[Statement]:
    """The statements of a section with their comparisons; none if the section is empty."""
    return SECTIONS[section](finals) if section else []
