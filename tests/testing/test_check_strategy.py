import numpy as np
import pytest

from submax.strategies import Clipped, SubMax
from submax.testing import check_strategy


class Unnormalized(SubMax):
    def probabilities(self, table):
        return np.maximum(table.probabilities[..., 1, :] - table.probabilities[..., 0, :], 0)


class Negative(Clipped):
    def probabilities(self, table):
        return np.einsum("...l,...lm->...m", self.weights(table), table.probabilities)


class Unfinished(SubMax):
    def probabilities(self, table):
        mass = Unnormalized.probabilities(self, table)
        with np.errstate(invalid="ignore"):
            return mass / mass.sum(axis=-1, keepdims=True)


class WritesIntoTheTable(SubMax):
    def probabilities(self, table):
        found = SubMax.probabilities(self, table)
        table.probabilities[..., 0, :] = table.probabilities[..., 1, :]
        return found


class Random(SubMax):
    def probabilities(self, table):
        size = table.probabilities.shape[-1]
        return RNG.dirichlet(np.ones(size), size=table.prior.shape[:-1])


class LikesTheFirst(SubMax):
    def probabilities(self, table):
        found = SubMax.probabilities(self, table) / 2
        found[..., 0] += 0.5
        return found


class MixesLeadingAxes(SubMax):
    def probabilities(self, table):
        found = SubMax.probabilities(self, table)
        leading = tuple(range(found.ndim - 1))
        return np.broadcast_to(found.mean(axis=leading), found.shape)


class TrustsSmoothing(SubMax):
    def probabilities(self, table):
        return SubMax.probabilities(self, table._replace(prior=np.full_like(table.prior, 0.5)))


class DropsAnAxis(SubMax):
    def probabilities(self, table):
        return SubMax.probabilities(self, table)[..., :1]


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("strategy", "rule"),
    [
        (Unnormalized(), "they must sum to one"),
        (Negative(), "no probability may be negative"),
        (Unfinished(), "probabilities must be finite"),
        (WritesIntoTheTable(), "the table must not be changed"),
        (Random(), "the same table must give the same policy"),
        (LikesTheFirst(), "a permutation of the actions must permute the policy"),
        (MixesLeadingAxes(), "the entries of the leading axes must be independent"),
        (TrustsSmoothing(), "uniform where a level that carries weight was never observed"),
        (DropsAnAxis(), "probabilities must have shape"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_strategy_is_found_out(strategy, rule, seed):
    with pytest.raises(AssertionError, match=rule):
        check_strategy(strategy, seed)
