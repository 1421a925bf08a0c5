"""Several choices made jointly; the reward's probability depends on them and on a context."""

from dataclasses import dataclass

from submax.core.errors import InputError
from submax.core.spaces.slots import Slots
from submax.environments.networks.network_environment import NetworkEnvironment
from submax.environments.networks.truth_network import check_truth


@dataclass(frozen=True)
class Combinatorial(NetworkEnvironment):
    """One choice in each slot, one reward for all: P(1 | a, c) = σ(f(onehot(a₁) ⊕ … ⊕ c) + s).

    ``sizes`` gives the number of choices of each slot and s is ``shift``. The random network f
    with ``hidden`` units and the contexts of width ``dimension`` are those of `Contextual`.
    ``best_reward`` is exact and needs a space of at most `LISTING_LIMIT` joint actions; everything
    else works for any number of them.

    Reference: Xu et al. (2024), section 4.3.

    *Departs from the paper:* the paper names 2, 4, 6, 16 and 32 choices and 32768 joint actions;
    this number of joint actions needs 8 instead of 6. The paper does not state the shift; with −3
    the average reward is that of the paper, E[R̄] = 0.0483.
    """

    sizes: tuple[int, ...] = (2, 4, 8, 16, 32)
    dimension: int = 20
    shift: float = -3.0
    hidden: int = 32

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, tuple):
            raise InputError(
                f"sizes must be a tuple of whole numbers, such as (2, 4, 8), not {self.sizes!r}",
                parameter="sizes",
            )
        Slots(self.sizes)
        check_truth(self.dimension, self.shift, self.hidden)

    @property
    def space(self) -> Slots:
        return Slots(self.sizes)
