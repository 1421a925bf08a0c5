"""The operations of the HTTP interface: their paths, scopes and types, and what each does."""

import contextlib
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import iscoroutinefunction
from typing import IO, TYPE_CHECKING, Any

import msgspec

from submax.bandit.decision import Decision, Receipt
from submax.bandit.declaring import Who, audit_lines
from submax.bandit.durable import DurableBandit
from submax.bandit.settings import allows_none
from submax.core.errors import ConflictError, InputError, NotFoundError, StoreError
from submax.schema.actions import Change
from submax.server import messages as m
from submax.server.access import COOKIE, Caller
from submax.server.deciding import write
from submax.server.keys import SESSION_SECONDS, unix_time
from submax.server.limits import RETRY_SOON, RefusedError
from submax.server.service import Service

if TYPE_CHECKING:
    # Commands carry out operations on a store without a web server.
    from starlette.responses import Response

LOG = logging.getLogger("submax")
BANDIT = "/bandits/{name}"
AUDITED_CHANGES = 1000  # in one answer, the newest
RANDOM_IDS = (4, 7)  # the versions of UUIDs that nobody can guess
JSON, PARQUET = "application/json", "application/vnd.apache.parquet"
CHUNK_BYTES = 1_000_000  # what is read at once of a file that is sent
DECIDING, OPERATING, SERVER = "Decisions and rewards", "Bandits", "Server"
"""The groups of operations in the description."""


@dataclass(slots=True)
class Call:
    """One request for an operation."""

    service: Service
    caller: Caller
    path: Mapping[str, str]
    body: Any

    @property
    def who(self) -> Who:
        return self.caller.who

    @property
    def bandit(self) -> DurableBandit:
        """The bandit in the path; one that another process has declared is opened now."""
        return self.service.find(self.path["name"])

    async def opened(self) -> DurableBandit:
        """The same for decisions and rewards, which must not wait for a thread."""
        name = self.path["name"]
        if (bandit := self.service.get(name)) is None:
            bandit = await self.service.in_thread(self.service.find, name)
        return bandit


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    ``scope`` is the scope that a key needs, None if no key is needed. ``body`` and ``answer`` are
    the types of request and response. ``call`` makes the answer; if it is not ``async``, it may
    wait for the store. ``early``: it is answered before all bandits are open. ``partial``: a key
    for some bandits may call it too; the answer then has only these bandits. ``hidden``: the
    description leaves it out, since it is for pages of this server. ``cost`` says for how many
    requests a body counts in the rate limit.
    """

    name: str
    method: str
    path: str
    scope: str | None
    summary: str
    answer: Any
    call: Callable[[Call], Any]
    body: Any = None
    tag: str = OPERATING
    status: int = 200
    early: bool = False
    partial: bool = False
    hidden: bool = False
    media: str = JSON
    cost: Callable[[Any], float] = lambda body: 1.0

    async def carry_out(self, call: Call) -> Any:
        if iscoroutinefunction(self.call):
            return await self.call(call)
        return await call.service.in_thread(self.call, call)


@cache
def path_pattern(path: str) -> re.Pattern[str]:
    """What fits a path, in which braces stand around the name of a part."""
    return re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path))


# Decisions and rewards


async def _decide(call: Call) -> Decision:
    bandit = await call.opened()
    (request,) = _requests(call, [call.body])
    return _for_caller(call.caller, await call.service.deciding(bandit).decide(request))


async def _decide_many(call: Call) -> Any:
    bandit, requests = await call.opened(), _requests(call, call.body.requests)
    decisions = await call.service.deciding(bandit).decide_many(requests)
    return m.Decisions([_for_caller(call.caller, decision) for decision in decisions])


def _requests(call: Call, bodies: list[Any]) -> list[dict[str, Any]]:
    for body in bodies if call.caller.is_browser else ():
        if body.eligible is not None:
            raise RefusedError(
                403,
                "a browser key may not choose eligible arms, because a visitor could force "
                "an arm: leave 'eligible' out, or decide on your server",
            )
        if body.id is not None:
            check_random(body.id)
    return [msgspec.structs.asdict(body) for body in bodies]


def check_random(identifier: str) -> None:
    """Refuse ids that a stranger could guess: a page knows only those that it was given."""
    version = None
    with contextlib.suppress(ValueError):
        version = uuid.UUID(identifier).version if len(identifier) == 36 else None
    if version not in RANDOM_IDS:
        raise RefusedError(
            403,
            f"the id {identifier!r:.60} can be guessed: with a browser key use ids from "
            "the server, or UUIDs of version 4 or 7",
        )


def _for_caller(caller: Caller, decision: Decision) -> Decision:
    """The decision without what a page must not learn."""
    if caller.is_browser and decision.unit is not None:
        return msgspec.structs.replace(decision, unit=None)
    return decision


async def _reward(call: Call) -> Receipt:
    bandit, (given,) = await _rewards(call, [call.body])
    return await write(bandit.prepare_reward(**given, source=call.caller.source))


async def _reward_many(call: Call) -> Any:
    bandit, rewards = await _rewards(call, call.body.rewards)
    return m.Receipts(await write(bandit.prepare_rewards(rewards, source=call.caller.source)))


async def _rewards(call: Call, bodies: list[Any]) -> tuple[DurableBandit, list[dict[str, Any]]]:
    """A bandit and its rewards; a page rewards only decisions that it was given, within bounds."""
    bandit, rewards = await call.opened(), [msgspec.structs.asdict(body) for body in bodies]
    if not call.caller.is_browser:
        return bandit, rewards
    for body in bodies:
        check_random(body.id)
    if bandit.settings.scale.bounds is None:
        raise RefusedError(
            403,
            "rewards of this bandit have no bounds, so a single visitor could distort every mean: "
            "declare rewards with low and high, or send them from your server",
        )

    def first_unknown() -> str | None:
        return next((body.id for body in bodies if bandit.read.row(body.id) is None), None)

    missing = await call.service.in_thread(first_unknown)
    if missing is not None:
        raise NotFoundError(
            f"there is no decision {missing!r}: with a browser key only existing "
            "decisions can be rewarded"
        )
    return bandit, rewards


async def _activate(call: Call) -> Receipt:
    bandit = await call.opened()
    if call.caller.is_browser:
        check_random(call.body.id)
    return await write(bandit.prepare_activation(call.body.id))


# Bandits


def _list_bandits(call: Call) -> Any:
    return m.Bandits([name for name in call.service.names() if call.caller.may_see(name)])


def _create(call: Call) -> Any:
    table = msgspec.to_builtins(call.body)
    name = table.pop("name")
    # Null means "left out", but for settings that can be None.
    words = {word: value for word, value in table.items() if value is not None or allows_none(word)}
    return m.bandit_details(call.service.create(name, words, who=call.who))


def _delete(call: Call) -> Any:
    call.service.delete(call.path["name"], call.who)
    return _list_bandits(call)


def _change_choice(call: Call) -> None:
    body = call.body
    change = Change(body.verb, body.choice, body.slot, body.features, body.ramp)
    call.bandit.change(change, who=call.who)


def _versions(call: Call) -> Any:
    bandit = call.bandit
    return m.Versions(bandit.versions(), bandit.version, bandit.held)


def _export(call: Call) -> "Response":
    from starlette.responses import StreamingResponse

    name = call.bandit.name
    file = call.service.export(name)
    headers = {"Content-Disposition": f'attachment; filename="{name}.parquet"'}
    return StreamingResponse(_parts(file), media_type=PARQUET, headers=headers)


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(CHUNK_BYTES):
            yield part


# The server


def _add_key(call: Call) -> Any:
    body, keys = call.body, call.service.keys
    alone = not keys.needed and ("admin" not in body.scopes or body.bandits is not None)
    if alone and not call.service.is_local:
        raise ConflictError(
            "with this as the only key, no other key could be created: first create one with the "
            "scope admin for all bandits",
            code="first-key",
            parameter="scopes",
        )
    options = msgspec.structs.asdict(body)
    if body.expires is not None:
        options["expires"] = unix_time("expires", body.expires)
        if options["expires"] <= time.time():
            raise InputError(
                f"expires was {body.expires!r:.60}, which has passed: give a date or a time in the "
                "future",
                parameter="expires",
            )
    return m.KeyMade(*keys.add(**options, who=call.who))


def _revoke_key(call: Call) -> Any:
    call.service.keys.revoke(call.path["id"], call.who)
    return m.KeyList(list(call.service.keys))


async def _healthy(call: Call) -> Any:
    return m.Health("ok")


async def _ready(call: Call) -> Any:
    """Answer if the store can write; strangers do not learn why it cannot."""
    if not call.service.ready:
        raise RefusedError(503, "the server is opening its bandits: try again", RETRY_SOON)
    try:
        await call.service.probe.check()
    except StoreError as error:
        LOG.error("the server is not ready: %s", error)
        raise StoreError("the store cannot write now: see the server's log") from error
    return m.Health("ok")


def _sign_in(call: Call) -> "Response":
    key = call.caller.key
    return _with_cookie(call, "" if key is None else call.service.sessions.begin(key))


def _sign_out(call: Call) -> "Response":
    if call.caller.session:
        call.service.sessions.end(call.caller.session)
    return _with_cookie(call, "")


def _with_cookie(call: Call, token: str) -> "Response":
    from starlette.responses import Response

    response = Response(msgspec.json.encode(m.Health("ok")), media_type=JSON)
    response.set_cookie(
        COOKIE, token, SESSION_SECONDS if token else 0, httponly=True, samesite="strict",
        secure=call.caller.encrypted,
    )  # fmt: skip
    return response


def _change(
    name: str, method: str, path: str, summary: str, work: Callable[[Call], object], *more: Any,
    **options: Any,
) -> Operation:  # fmt: skip
    """An operation that changes a bandit, and answers with the bandit as it stands then."""

    def changed(call: Call) -> Any:
        work(call)
        return m.bandit_details(call.bandit)

    path = BANDIT + path
    return Operation(
        name, method, path, "admin", summary, m.BanditDetails, changed, *more, **options
    )


OPERATIONS = (
    Operation(
        "decide", "POST", f"{BANDIT}/decide", "decide",
        "Choose an action; the same id again gives the same decision.",
        Decision, _decide, m.Decide, DECIDING,
    ),
    Operation(
        "decide-many", "POST", f"{BANDIT}/decide-many", "decide",
        "Choose several actions, all or none.",
        m.Decisions, _decide_many, m.DecideMany, DECIDING,
        cost=lambda body: len(body.requests),
    ),
    Operation(
        "reward", "POST", f"{BANDIT}/reward", "reward",
        "Record the reward of a decision; repeating it changes nothing.",
        Receipt, _reward, m.Reward, DECIDING,
    ),
    Operation(
        "reward-many", "POST", f"{BANDIT}/reward-many", "reward",
        "Record several rewards; one that conflicts gets the receipt 'conflict'.",
        m.Receipts, _reward_many, m.RewardMany, DECIDING,
        cost=lambda body: len(body.rewards),
    ),
    Operation(
        "activate", "POST", f"{BANDIT}/activate", "decide",
        "Confirm a decision that was made with activate = false.",
        Receipt, _activate, m.Activate, DECIDING,
    ),
    Operation(
        "list", "GET", "/bandits", "read", "All bandits.", m.Bandits, _list_bandits, partial=True,
    ),
    Operation(
        "create", "POST", "/bandits", "admin", "Declare a bandit.",
        m.BanditDetails, _create, m.Create, status=201,
    ),
    Operation(
        "show", "GET", BANDIT, "read", "A bandit with its current settings and counts.",
        m.BanditDetails, lambda call: m.bandit_details(call.bandit),
    ),
    _change(
        "set", "PATCH", "",
        "Change settings, the policy or guard rails, all or none; null restores a default.",
        lambda call: call.service.change(call.bandit, msgspec.to_builtins(call.body), call.who),
        m.Set,
    ),
    Operation(
        "delete", "DELETE", BANDIT, "admin",
        "Delete a bandit with its decisions and versions forever; the answer lists the rest.",
        m.Bandits, _delete,
    ),
    _change(
        "pause", "POST", "/pause",
        "Decide by the control, the baseline or uniformly, and learn nothing, until resumed.",
        lambda call: call.bandit.set_status("paused", who=call.who),
    ),
    _change(
        "resume", "POST", "/resume", "Let a paused or archived bandit decide and learn again.",
        lambda call: call.bandit.set_status("active", who=call.who),
    ),
    _change(
        "archive", "POST", "/archive",
        "Refuse decisions and rewards; what is stored can still be read.",
        lambda call: call.bandit.set_status("archived", who=call.who),
    ),
    _change(
        "change", "POST", "/choices", "Add, pause, resume or retire an arm or a choice.",
        _change_choice, m.ChangeChoice,
    ),
    Operation(
        "lift", "GET", f"{BANDIT}/lift", "read",
        "The extra reward per decision, compared with the holdout or the control.",
        m.Lifts, lambda call: m.Lifts(call.bandit.lift()),
    ),
    Operation(
        "erase", "POST", f"{BANDIT}/erase", "admin",
        "Delete all decisions and rewards of a unit, or make them anonymous.",
        m.Erased, lambda call: m.Erased(
            call.bandit.erase(call.body.unit, anonymous=call.body.anonymous, who=call.who)),
        m.Erase,
    ),
    Operation(
        "export", "GET", f"{BANDIT}/export", "read",
        "All decisions with their rewards, as a Parquet file.", bytes, _export, media=PARQUET,
    ),
    Operation(
        "versions", "GET", f"{BANDIT}/versions", "read", "All versions.", m.Versions, _versions,
    ),
    Operation(
        "publish", "POST", f"{BANDIT}/publish", "admin",
        "Make a version live and hold it; without one, follow the newest version.",
        m.Deciding, lambda call: m.Deciding(call.bandit.publish(call.body.version, who=call.who)),
        m.Publish,
    ),
    Operation(
        "roll-back", "POST", f"{BANDIT}/roll-back", "admin",
        "Go back to the version before the current one, and hold it.",
        m.Deciding, lambda call: m.Deciding(call.bandit.roll_back(who=call.who)),
    ),
    Operation(
        "keys", "GET", "/keys", "admin", "All keys, without secrets.",
        m.KeyList, lambda call: m.KeyList(list(call.service.keys)), tag=SERVER,
    ),
    Operation(
        "add-key", "POST", "/keys", "admin", "Create a key; only this answer contains it.",
        m.KeyMade, _add_key, m.NewKey, SERVER, 201,
    ),
    Operation(
        "revoke-key", "DELETE", "/keys/{id}", "admin", "Revoke a key.",
        m.KeyList, _revoke_key, tag=SERVER,
    ),
    Operation(
        "audit", "GET", "/audit", "admin",
        "The last 1000 changes, newest first: who made them, when, and what they changed.",
        m.Audit, lambda call: m.Audit(audit_lines(call.service.store, AUDITED_CHANGES)), tag=SERVER,
    ),
    Operation(
        "health", "GET", "/healthz", None, "Whether the process answers.",
        m.Health, _healthy, tag=SERVER, early=True,
    ),
    Operation(
        "ready", "GET", "/readyz", None,
        "Whether the store can write, and every bandit was opened, or named in the log as "
        "impossible to open.",
        m.Health, _ready, tag=SERVER, early=True,
    ),
    Operation(
        "sign-in", "POST", "/login", "read",
        "Exchange the key in the header for a cookie, which is valid for 12 hours.",
        m.Health, _sign_in, tag=SERVER, partial=True, hidden=True,
    ),
    Operation(
        "sign-out", "POST", "/logout", None, "End the session.",
        m.Health, _sign_out, tag=SERVER, early=True, hidden=True,
    ),
)  # fmt: skip
"""All operations but those on the description and the metrics, which belong to the application."""
