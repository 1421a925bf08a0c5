"""The response of each slot of a joint action, computed from the reward of the whole."""

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.memory.buffer import Buffer
from submax.policies.neural.value_belief import ValueBelief, reward_shares


def slot_responses(values: ValueBelief, buffer: Buffer, alternatives: Integers) -> Floats:
    """Return ρ_s = r / S + v(a) − (1/P) Σ_b v(b, a_{−s}) of every slot: ``[R, n, S]``.

    v is the value network, S the number of slots, and b runs over the P choices of slot s in
    ``alternatives [R, n, S, P]``; the other slots keep the choices of a. So a slot responds by
    its share of the reward, and by what its choice is worth compared with other choices. It would
    be a mistake to subtract v(a) from r, because the responses would then be highest if a bad
    action was lucky. Rewards are scaled to the range from 0 to 1.
    """
    reward = reward_shares(values.problem.scale, buffer, buffer.reward)
    predicted = values.values_of(buffer)
    slots, count = alternatives.shape[2:]
    found = np.empty((*reward.shape, slots))
    for slot in range(slots):
        others = np.zeros_like(reward)
        for one in range(count):
            action = buffer.action.copy()
            action[..., slot] = alternatives[:, :, slot, one]
            others += values.values_of(buffer._replace(action=action)) / count
        found[..., slot] = reward / slots + predicted - others
    return found
