"""What the interface can do."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from submax.core.errors import StoreUnavailable
from submax.live.bandit import WAITING_SECONDS, Bandit
from submax.live.decision import Decision, Receipt
from submax.live.event import Written
from submax.live.menu import Change
from submax.live.writing import Answer, Writing, joined
from submax.server import messages as m
from submax.server.export_file import exported
from submax.server.operation import Call, Operation
from submax.server.shown import bandit_shown, key_shown, version_shown

BANDIT = "/bandits/{name}"


def operations() -> list[Operation]:
    """All of them."""
    return [*_deciding(), *_bandits(), *_versions(), *_keys(), *_health()]


def _deciding() -> list[Operation]:
    return [
        Operation(
            "decide",
            "POST",
            f"{BANDIT}/decide",
            "decide",
            "Choose an action; the same id again gives the same decision.",
            Decision,
            _decide,
            m.Decide,
        ),
        Operation(
            "decide-many",
            "POST",
            f"{BANDIT}/decide-many",
            "decide",
            "Choose several actions, all or none.",
            m.Decisions,
            _decide_many,
            m.DecideMany,
            cost=lambda body: len(body.requests),
        ),
        Operation(
            "reward",
            "POST",
            f"{BANDIT}/reward",
            "reward",
            "Tell the reward of a decision; the same again changes nothing.",
            Receipt,
            _reward,
            m.Reward,
        ),
        Operation(
            "reward-many",
            "POST",
            f"{BANDIT}/reward-many",
            "reward",
            "Tell several rewards, all or none.",
            m.Receipts,
            _reward_many,
            m.RewardMany,
            cost=lambda body: len(body.rewards),
        ),
        Operation(
            "activate",
            "POST",
            f"{BANDIT}/activate",
            "decide",
            "Say that a decision was shown that was made with activate = false.",
            Receipt,
            _activate,
            m.Activate,
        ),
    ]


def _bandits() -> list[Operation]:
    return [
        Operation(
            "list", "GET", "/bandits", "read", "All bandits.", m.Bandits, _list, partial=True
        ),
        Operation(
            "create",
            "POST",
            "/bandits",
            "admin",
            "Declare a bandit.",
            m.BanditShown,
            _create,
            m.Create,
            status=201,
        ),
        Operation("show", "GET", BANDIT, "read", "A bandit as it stands.", m.BanditShown, _show),
        Operation(
            "change",
            "POST",
            f"{BANDIT}/choices",
            "admin",
            "Add, pause, resume or retire an arm or a choice.",
            m.BanditShown,
            _change,
            m.ChangeChoice,
        ),
        Operation(
            "export",
            "GET",
            f"{BANDIT}/export",
            "read",
            "All decisions with their rewards, as a Parquet file.",
            bytes,
            _export,
            media="application/vnd.apache.parquet",
        ),
    ]


def _versions() -> list[Operation]:
    return [
        Operation(
            "versions", "GET", f"{BANDIT}/versions", "read", "All versions.", m.Versions, _listed
        ),
        Operation(
            "publish",
            "POST",
            f"{BANDIT}/publish",
            "admin",
            "Let a version decide and no newer one; without one, the newest and those after.",
            m.Deciding,
            _publish,
            m.Publish,
        ),
        Operation(
            "roll-back",
            "POST",
            f"{BANDIT}/roll-back",
            "admin",
            "Let the version decide that did before.",
            m.Deciding,
            _roll_back,
        ),
    ]


def _keys() -> list[Operation]:
    return [
        Operation("keys", "GET", "/keys", "admin", "All keys, without secrets.", m.Keys, _key_list),
        Operation(
            "add-key",
            "POST",
            "/keys",
            "admin",
            "Make a key; its text is told once.",
            m.KeyMade,
            _key_add,
            m.NewKey,
            status=201,
        ),
        Operation(
            "revoke-key", "DELETE", "/keys/{id}", "admin", "Revoke a key.", m.Keys, _key_revoke
        ),
    ]


def _health() -> list[Operation]:
    return [
        Operation(
            "health",
            "GET",
            "/healthz",
            None,
            "Whether the process answers.",
            m.Health,
            _healthy,
            early=True,
        ),
        Operation(
            "ready", "GET", "/readyz", None, "Whether all bandits are open.", m.Health, _healthy
        ),
    ]


async def written(bandit: Bandit, writing: Writing[Answer]) -> Answer:
    """The answer once it is durable; other requests go on meanwhile."""
    future: Future[list[Written]] = bandit.store.append(writing.stream, writing.entries)
    try:
        # The write goes on if the caller gives up: it may be durable already.
        found = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), WAITING_SECONDS)
    except TimeoutError as error:
        raise StoreUnavailable("the store does not answer: try again with the same id") from error
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


async def _decide(call: Call) -> Decision:
    bandit, wanted = await _bandit(call), call.body
    return await written(bandit, _wanted(bandit, wanted))


def _wanted(bandit: Bandit, wanted: m.Decide) -> Writing[Decision]:
    return bandit.requests.deciding(
        wanted.context, id=wanted.id, eligible=wanted.eligible, activate=wanted.activate
    )


async def _decide_many(call: Call) -> m.Decisions:
    bandit = await _bandit(call)
    requests = call.body.requests
    wanted = await _beside(lambda: joined([_wanted(bandit, one) for one in requests]))
    return m.Decisions(await written(bandit, wanted))


async def _reward(call: Call) -> Receipt:
    bandit, given = await _bandit(call), call.body
    return await written(bandit, bandit.requests.rewarding(given.id, given.value, key=given.key))


async def _reward_many(call: Call) -> m.Receipts:
    bandit = await _bandit(call)
    given = [bandit.requests.rewarding(one.id, one.value, key=one.key) for one in call.body.rewards]
    return m.Receipts(await written(bandit, joined(given)))


async def _activate(call: Call) -> Receipt:
    bandit = await _bandit(call)
    return await written(bandit, await _beside(bandit.requests.activating, call.body.id))


async def _list(call: Call) -> m.Bandits:
    names = await _beside(call.service.names)
    allowed = None if call.key is None else call.key.bandits
    return m.Bandits([name for name in names if allowed is None or name in allowed])


async def _create(call: Call) -> m.BanditShown:
    table = msgspec.structs.asdict(call.body)
    name = table.pop("name")
    # What was left out has the default; the default reward may be null.
    given = {key: one for key, one in table.items() if one is not None and one is not msgspec.UNSET}
    if call.body.default_reward is None:
        given["default_reward"] = None
    if call.body.context is not None:
        given["context"] = {key: _field(one) for key, one in call.body.context.items()}
    return bandit_shown(await _beside(call.service.create, name, given))


def _field(given: object) -> object:
    if not isinstance(given, m.Field):
        return given
    table = msgspec.structs.asdict(given)
    return {key: value for key, value in table.items() if value is not None}


async def _show(call: Call) -> m.BanditShown:
    return bandit_shown(await _bandit(call))


async def _change(call: Call) -> m.BanditShown:
    bandit, body = await _bandit(call), call.body
    await _beside(bandit.change, Change(body.verb, body.choice, body.slot))
    return bandit_shown(bandit)


async def _export(call: Call) -> Any:
    return await _beside(exported, await _bandit(call))


async def _listed(call: Call) -> m.Versions:
    bandit = await _bandit(call)
    versions = await _beside(bandit.versions)
    return m.Versions([version_shown(one) for one in versions], bandit.version, bandit.held)


async def _publish(call: Call) -> m.Deciding:
    bandit = await _bandit(call)
    return m.Deciding(await _beside(bandit.publish, call.body.version))


async def _roll_back(call: Call) -> m.Deciding:
    bandit = await _bandit(call)
    return m.Deciding(await _beside(bandit.roll_back))


async def _key_list(call: Call) -> m.Keys:
    return m.Keys([key_shown(key) for key in call.service.keys])


async def _key_add(call: Call) -> m.KeyMade:
    body = call.body
    made = await _beside(call.service.keys.add, body.scopes, body.bandits, body.rate)
    return m.KeyMade(*made)


async def _key_revoke(call: Call) -> m.Keys:
    await _beside(call.service.keys.revoke, call.path["id"])
    return await _key_list(call)


async def _healthy(call: Call) -> m.Health:
    return m.Health("ok")
