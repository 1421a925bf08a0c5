"""Arms whose success probabilities depend on a context."""

from dataclasses import dataclass

from submax.core.checks import whole_number
from submax.core.spaces.arms import Arms
from submax.environments.networks.network_environment import NetworkEnvironment
from submax.environments.networks.truth_network import check_truth


@dataclass(frozen=True)
class Contextual(NetworkEnvironment):
    """K arms with rewards 0 and 1, P(1 | a, c) = σ(f(onehot(a) ⊕ c) + s).

    K is ``arms``, s is ``shift``: the lower, the rarer are rewards. f is a random network with one
    layer of ``hidden`` ReLU units; every replica has a network of its own. Contexts c are uniform
    on the unit sphere in R^``dimension``.

    Reference: Xu et al. (2024), section 4.2.

    *Departs from the paper:* all arms of a decision share one context, whereas Zhou et al. (2020),
    whom the paper follows, draw one for each arm. The paper does not state the network's width and
    initialization. With 32 units, Glorot-uniform weights and no biases, the average reward E[R̄]
    agrees with the paper: 0.501, 0.123 and 0.0185 for a shift of 0, −2 and −4.
    """

    arms: int = 4
    dimension: int = 20
    shift: float = 0.0
    hidden: int = 32

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        check_truth(self.dimension, self.shift, self.hidden)

    @property
    def space(self) -> Arms:
        return Arms(self.arms)
