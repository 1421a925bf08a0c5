"""The functions behind the operations on evaluations."""

from functools import lru_cache
from typing import Any

import msgspec

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.policies import presets
from submax.web.server.declaring.parameter_limits import check_parameters
from submax.web.server.evaluations.evaluation import Evaluation, Evaluations
from submax.web.server.evaluations.evaluation_runner import MAX_EVALUATIONS
from submax.web.server.interface.handlers import find_bandit, in_thread
from submax.web.server.interface.operation import OperationCall
from submax.web.server.service import refuse_files

REWARD_MODEL = "reward-model"
"""The policy that takes the action with the highest predicted reward."""


async def evaluations(call: OperationCall) -> Evaluations:
    """The evaluations of a bandit."""
    bandit = await find_bandit(call)
    found = call.service.evaluations.of_bandit(bandit.name)
    return Evaluations(bandit.name, MAX_EVALUATIONS, await in_thread(_names), found)


async def evaluate(call: OperationCall) -> Evaluation:
    """Start an evaluation."""
    bandit = await find_bandit(call)
    policies: list[str | dict[str, Any]] = msgspec.to_builtins(call.body.policies)
    await in_thread(check_policies, policies)
    return call.service.evaluations.start(bandit.name, policies)


async def remove(call: OperationCall) -> Evaluations:
    """Cancel or forget an evaluation, and list the others."""
    bandit = await find_bandit(call)
    await in_thread(call.service.evaluations.remove, bandit.name, call.path["evaluation"])
    return await evaluations(call)


def check_policies(policies: list[str | dict[str, Any]]) -> None:
    """Refuse files of the server, code, unknown names and parameters that are too large."""
    for one in policies:
        refuse_files(one)
        check_parameters({"policy": one})
        if isinstance(one, str):
            # What stands behind the @ is a variant, such as linucb@greedy.
            one_of("policy", one.partition("@")[0], _names(), listed_by="see `submax policies`")
    names = [one if isinstance(one, str) else msgspec.json.encode(one) for one in policies]
    if len(set(names)) < len(names):
        raise InputError("a policy is given twice, and each may be given once: leave one out")


@lru_cache(1)
def _names() -> list[str]:
    return [*sorted(presets()), REWARD_MODEL]
