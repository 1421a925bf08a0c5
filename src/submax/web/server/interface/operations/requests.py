"""The operations that applications call: decisions, rewards and activations."""

from submax.bandit.decision import Decision, Receipt
from submax.web.server.interface import answers, handlers
from submax.web.server.interface import messages as m
from submax.web.server.interface.operation import Operation
from submax.web.server.interface.operations.paths import BANDIT


def request_operations() -> list[Operation]:
    """The operations on decisions and rewards."""
    return [*_deciding(), *_rewarding()]


def _deciding() -> list[Operation]:
    return [
        Operation(
            "decide",
            "POST",
            f"{BANDIT}/decide",
            "decide",
            "Choose an action; the same id again gives the same decision.",
            Decision,
            handlers.decide,
            m.Decide,
            frequent=True,
        ),
        Operation(
            "decide-many",
            "POST",
            f"{BANDIT}/decide-many",
            "decide",
            "Choose several actions, all or none.",
            answers.Decisions,
            handlers.decide_many,
            m.DecideMany,
            frequent=True,
            cost=lambda body: len(body.requests),
        ),
    ]


def _rewarding() -> list[Operation]:
    return [
        Operation(
            "reward",
            "POST",
            f"{BANDIT}/reward",
            "reward",
            "Record the reward of a decision; the same again changes nothing.",
            Receipt,
            handlers.reward,
            m.Reward,
            frequent=True,
        ),
        Operation(
            "reward-many",
            "POST",
            f"{BANDIT}/reward-many",
            "reward",
            "Record several rewards; one that conflicts gets the receipt 'conflict'.",
            answers.Receipts,
            handlers.reward_many,
            m.RewardMany,
            frequent=True,
            cost=lambda body: len(body.rewards),
        ),
        Operation(
            "activate",
            "POST",
            f"{BANDIT}/activate",
            "decide",
            "Confirm a decision that was made with activate = false.",
            Receipt,
            handlers.activate,
            m.Activate,
        ),
    ]
