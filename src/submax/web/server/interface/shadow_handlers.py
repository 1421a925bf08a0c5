"""The functions behind the operations on shadows."""

import msgspec

from submax.live.monitoring.shadow.shadow_report import ShadowReport
from submax.web.server.interface import answers
from submax.web.server.interface.handlers import find_bandit, in_thread
from submax.web.server.interface.operation import OperationCall


async def show_shadow(call: OperationCall) -> ShadowReport:
    """Compare the shadow with the policy that decides."""
    bandit = await find_bandit(call)
    return await in_thread(bandit.shadow)


async def set_shadow(call: OperationCall) -> ShadowReport:
    """Set a shadow, or none."""
    bandit = await find_bandit(call)
    policy = msgspec.to_builtins(call.body.policy)
    await in_thread(call.service.set_shadow, bandit, policy)
    return await in_thread(bandit.shadow)


async def promote_shadow(call: OperationCall) -> answers.Deciding:
    """Let the shadow decide."""
    bandit = await find_bandit(call)
    return answers.Deciding(await in_thread(lambda: bandit.promote_shadow(by="")))


async def roll_back_shadow(call: OperationCall) -> answers.Deciding:
    """Undo the last promotion."""
    bandit = await find_bandit(call)
    return answers.Deciding(await in_thread(lambda: bandit.roll_back_shadow(by="")))
