"""What the operations do."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from submax.core.errors import StoreError
from submax.live.bandit import Bandit
from submax.live.bandit_base import WAITING_SECONDS
from submax.live.declaring.settings import allows_none
from submax.live.serving.decision import Decision, Receipt
from submax.live.store.event import AppendResult
from submax.live.store.pending_write import Answer, PendingWrite, joined
from submax.schema.choices import Change
from submax.server import messages as m
from submax.server.details import bandit_details, key_details, version_details
from submax.server.export_file import exported
from submax.server.operation import Call

LOG = logging.getLogger("submax")


async def written(bandit: Bandit, writing: PendingWrite[Answer]) -> Answer:
    """The answer once it is durable; other requests go on meanwhile."""
    future: Future[list[AppendResult]] = bandit.store.append(writing.stream, writing.entries)
    try:
        # The write goes on if the caller gives up: it may be durable already.
        found = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), WAITING_SECONDS)
    except TimeoutError as error:
        raise StoreError("the store does not answer: try again with the same id") from error
    return writing.answer(found)


async def _beside(function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Something slow, in a thread."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


async def _bandit(call: Call) -> Bandit:
    """The bandit of the path; one that another process has made is opened now."""
    name = call.path["name"]
    if name in call.service:
        return call.service[name]
    return await _beside(call.service.find, name)


async def decide(call: Call) -> Decision:
    """Choose."""
    bandit, wanted = await _bandit(call), call.body
    return await written(bandit, _wanted(bandit, wanted))


def _wanted(bandit: Bandit, wanted: m.Decide) -> PendingWrite[Decision]:
    return bandit.requests.deciding(
        wanted.context, id=wanted.id, eligible=wanted.eligible, activate=wanted.activate
    )


async def decide_many(call: Call) -> m.Decisions:
    """Choose several; drawing them may take long."""
    bandit = await _bandit(call)
    requests = call.body.requests
    wanted = await _beside(lambda: joined([_wanted(bandit, one) for one in requests]))
    return m.Decisions(await written(bandit, wanted))


async def reward(call: Call) -> Receipt:
    """Keep a reward."""
    bandit, given = await _bandit(call), call.body
    writing = bandit.requests.rewarding(given.id, given.value, key=given.key)
    receipt = await written(bandit, writing)
    _log_if_late(bandit)
    return receipt


def _log_if_late(bandit: Bandit) -> None:
    sentence = bandit.requests.late.sentence(bandit.settings)
    if sentence is not None:
        LOG.warning("%s: %s", bandit.name, sentence)


async def reward_many(call: Call) -> m.Receipts:
    """Keep several."""
    bandit = await _bandit(call)
    given = [{"id": one.id, "value": one.value, "key": one.key} for one in call.body.rewards]
    receipts = await written(bandit, bandit.requests.rewarding_many(given))
    _log_if_late(bandit)
    return m.Receipts(receipts)


async def activate(call: Call) -> Receipt:
    """Keep an activation."""
    bandit = await _bandit(call)
    return await written(bandit, await _beside(bandit.requests.activating, call.body.id))


async def list_bandits(call: Call) -> m.Bandits:
    """Those that the key may see."""
    names = await _beside(call.service.names)
    allowed = None if call.key is None else call.key.bandits
    return m.Bandits([name for name in names if allowed is None or name in allowed])


async def create(call: Call) -> m.BanditDetails:
    """Declare a bandit."""
    table = msgspec.to_builtins(call.body)
    name = table.pop("name")
    # Null means "left out", but for settings that can be None.
    given = {word: value for word, value in table.items() if value is not None or allows_none(word)}
    return bandit_details(await _beside(call.service.create, name, given))


async def show(call: Call) -> m.BanditDetails:
    """As it stands."""
    return bandit_details(await _bandit(call))


async def change(call: Call) -> m.BanditDetails:
    """Change a choice."""
    bandit, body = await _bandit(call), call.body
    await _beside(bandit.change, Change(body.verb, body.choice, body.slot, body.features))
    return bandit_details(bandit)


async def export(call: Call) -> Any:
    """A file."""
    return await _beside(exported, await _bandit(call))


async def list_versions(call: Call) -> m.Versions:
    """All versions."""
    bandit = await _bandit(call)
    versions = await _beside(bandit.versions)
    return m.Versions([version_details(one) for one in versions], bandit.version, bandit.held)


async def publish(call: Call) -> m.Deciding:
    """Let a version decide."""
    bandit = await _bandit(call)
    return m.Deciding(await _beside(bandit.publish, call.body.version))


async def roll_back(call: Call) -> m.Deciding:
    """Let the one before decide."""
    bandit = await _bandit(call)
    return m.Deciding(await _beside(bandit.roll_back))


async def list_keys(call: Call) -> m.Keys:
    """Without secrets."""
    return m.Keys([key_details(key) for key in call.service.keys])


async def add_key(call: Call) -> m.KeyMade:
    """Make a key."""
    body = call.body
    made = await _beside(call.service.keys.add, body.scopes, body.bandits, body.rate)
    return m.KeyMade(*made)


async def revoke_key(call: Call) -> m.Keys:
    """Revoke a key."""
    await _beside(call.service.keys.revoke, call.path["id"])
    return await list_keys(call)


async def healthy(call: Call) -> m.Health:
    """That it answers says it."""
    return m.Health("ok")
