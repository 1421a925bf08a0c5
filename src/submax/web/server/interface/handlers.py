"""The functions behind the operations of the interface."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec

from submax.bandit.decision import Decision, Receipt
from submax.bandit.settings import allows_none
from submax.live.bandits.bandit import LiveBandit
from submax.live.operating.notices import missing_rails
from submax.live.store.pending_write import Answer
from submax.schema.actions import Change
from submax.web.server.access.key import parsed_time
from submax.web.server.exports.export_file import exported
from submax.web.server.interface import answers
from submax.web.server.interface.details import (
    audited_change,
    bandit_details,
    key_details,
    version_details,
)
from submax.web.server.interface.operation import OperationCall

LOG = logging.getLogger("submax")
AUDITED_CHANGES = 1000
"""Changes in one answer, the newest; the command line shows more."""


async def in_thread(function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call a slow function in a thread."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


async def find_bandit(call: OperationCall) -> LiveBandit:
    """The bandit in the path; one that another process has declared is opened now."""
    name = call.path["name"]
    if name in call.service:
        return call.service[name]
    return await in_thread(call.service.find, name)


async def decide(call: OperationCall) -> Decision:
    """Make a decision."""
    bandit = await find_bandit(call)
    return await call.service.decisions(bandit).decide(call.body)


async def decide_many(call: OperationCall) -> answers.Decisions:
    """Make several decisions, all or none."""
    bandit = await find_bandit(call)
    return answers.Decisions(await call.service.decisions(bandit).decide_many(call.body.requests))


async def reward(call: OperationCall) -> Receipt:
    """Record a reward."""
    bandit, given = await find_bandit(call), call.body
    pending = bandit.requests.rewarding(
        given.id,
        given.value,
        key=given.key,
        name=given.name,
        slot=given.slot,
        source=_source(call),
    )
    receipt = await call.service.writes.write(pending)
    _log_if_late(bandit)
    return receipt


def _source(call: OperationCall) -> str:
    """The id of the key that sent a request; empty if the server needs no keys."""
    return "" if call.key is None else call.key.id


def _log_if_late(bandit: LiveBandit) -> None:
    sentence = bandit.requests.late.sentence(bandit.settings)
    if sentence is not None:
        LOG.warning("%s: %s", bandit.name, sentence)


async def reward_many(call: OperationCall) -> answers.Receipts:
    """Record several rewards."""
    bandit = await find_bandit(call)
    given = [msgspec.structs.asdict(one) for one in call.body.rewards]
    pending = bandit.requests.rewarding_many(given, source=_source(call))
    receipts = await call.service.writes.write(pending)
    _log_if_late(bandit)
    return answers.Receipts(receipts)


async def activate(call: OperationCall) -> Receipt:
    """Record an activation."""
    bandit = await find_bandit(call)
    return await call.service.writes.write(
        await in_thread(bandit.requests.activating, call.body.id)
    )


async def list_bandits(call: OperationCall) -> answers.Bandits:
    """The names of the bandits that the key may see."""
    names = await in_thread(call.service.names)
    allowed = None if call.key is None else call.key.bandits
    return answers.Bandits([name for name in names if allowed is None or name in allowed])


async def create(call: OperationCall) -> answers.BanditDetails:
    """Declare a bandit."""
    table = msgspec.to_builtins(call.body)
    name = table.pop("name")
    # Null means "left out", but for settings that can be None.
    given = {word: value for word, value in table.items() if value is not None or allows_none(word)}
    bandit = await in_thread(call.service.create, name, given)
    return await in_thread(bandit_details, bandit)


async def delete(call: OperationCall) -> answers.Bandits:
    """Delete a bandit, and list the others."""
    await in_thread(call.service.delete, call.path["name"])
    return await list_bandits(call)


async def show(call: OperationCall) -> answers.BanditDetails:
    """Describe a bandit."""
    return await in_thread(bandit_details, await find_bandit(call))


async def set_settings(call: OperationCall) -> answers.BanditDetails:
    """Change settings."""
    bandit = await find_bandit(call)
    await in_thread(call.service.change, bandit, msgspec.to_builtins(call.body))
    return await in_thread(bandit_details, bandit)


async def pause(call: OperationCall) -> answers.BanditDetails:
    """Pause a bandit."""
    return await _with_status(call, "paused")


async def resume(call: OperationCall) -> answers.BanditDetails:
    """Resume a bandit."""
    return await _with_status(call, "active")


async def archive(call: OperationCall) -> answers.BanditDetails:
    """Archive a bandit."""
    return await _with_status(call, "archived")


async def _with_status(call: OperationCall, status: str) -> answers.BanditDetails:
    bandit = await find_bandit(call)
    await in_thread(call.service.change, bandit, {"status": status})
    return await in_thread(bandit_details, bandit)


async def lift(call: OperationCall) -> answers.Lifts:
    """The lift of a bandit."""
    return answers.Lifts(await in_thread((await find_bandit(call)).lift))


async def change(call: OperationCall) -> answers.BanditDetails:
    """Change a choice."""
    bandit, body = await find_bandit(call), call.body
    changed = Change(body.verb, body.choice, body.slot, body.features, body.ramp)
    await in_thread(bandit.change, changed)
    for sentence in missing_rails(bandit.settings.guard_rails, bandit.menu):
        LOG.warning("%s: %s", bandit.name, sentence)
    return await in_thread(bandit_details, bandit)


async def export(call: OperationCall) -> Any:
    """Send the log as a Parquet file."""
    bandit = await find_bandit(call)
    return await in_thread(exported, call.service.exports, bandit.name)


async def list_versions(call: OperationCall) -> answers.Versions:
    """List all versions."""
    bandit = await find_bandit(call)
    versions = await in_thread(bandit.versions)
    return answers.Versions([version_details(one) for one in versions], bandit.version, bandit.held)


async def publish(call: OperationCall) -> answers.Deciding:
    """Let a version decide."""
    bandit = await find_bandit(call)
    return answers.Deciding(await in_thread(bandit.publish, call.body.version))


async def roll_back(call: OperationCall) -> answers.Deciding:
    """Let the version before the current one decide."""
    bandit = await find_bandit(call)
    return answers.Deciding(await in_thread(bandit.roll_back))


async def list_keys(call: OperationCall) -> answers.Keys:
    """List all keys, without secrets."""
    used = await in_thread(call.service.last_use.times)
    return answers.Keys([key_details(key, used.get(key.id)) for key in call.service.keys])


async def add_key(call: OperationCall) -> answers.KeyMade:
    """Make a key."""
    body, keys = call.body, call.service.keys
    expires = None if body.expires is None else parsed_time(body.expires, time.time())
    made = await in_thread(
        lambda: keys.add(
            body.scopes,
            body.bandits,
            body.rate,
            name=body.name,
            expires=expires,
            browser=body.browser,
        )
    )
    return answers.KeyMade(*made)


async def revoke_key(call: OperationCall) -> answers.Keys:
    """Revoke a key."""
    await in_thread(call.service.keys.revoke, call.path["id"])
    return await list_keys(call)


async def audit(call: OperationCall) -> answers.Audit:
    """List the last changes."""
    newest = await in_thread(call.service.audit.newest, AUDITED_CHANGES)
    return answers.Audit([audited_change(at, entry) for at, entry in newest])


async def ready(call: OperationCall) -> answers.Health:
    """Answer if the store can write."""
    await call.service.probe.check()
    return answers.Health("ok")


async def healthy(call: OperationCall) -> answers.Health:
    """Answer, which shows that the server works."""
    return answers.Health("ok")
