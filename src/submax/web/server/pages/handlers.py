"""The functions behind the pages."""

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from submax.live.store.pending_write import Answer
from submax.web.server.access.sessions import cookie_header
from submax.web.server.interface.handlers import find_bandit, in_thread, list_bandits
from submax.web.server.interface.operation import OperationCall
from submax.web.server.interface.responses import ENCODER, JSON
from submax.web.server.pages import build
from submax.web.server.pages import messages as m
from submax.web.server.pages.detail.context_messages import ContextsPage
from submax.web.server.pages.detail.contexts import contexts_page
from submax.web.server.pages.detail.decision_messages import DecisionsPage
from submax.web.server.pages.detail.decisions import decisions_page


async def _built(call: OperationCall, function: Callable[..., Answer], *arguments: Any) -> Answer:
    """What a function makes of the bandit in the path; in a thread, so that decisions go on."""
    return await in_thread(function, await find_bandit(call), *arguments)


async def home(call: OperationCall) -> m.HomePage:
    """All bandits that the key may see."""
    names = set((await list_bandits(call)).bandits)
    bandits = [one for one in call.service.opened() if one.name in names]
    rows = await in_thread(lambda: [build.bandit_row(one) for one in bandits])
    return m.HomePage(sorted(rows, key=lambda row: row.name))


async def overview(call: OperationCall) -> m.OverviewPage:
    """How a bandit does."""
    return await _built(call, build.overview, call.query.get("span"))


async def arms(call: OperationCall) -> m.ArmsPage:
    """The choices of a bandit."""
    asked = (call.query.get(name) for name in ("slot", "span", "page"))
    return await _built(call, build.arms, *asked)


async def contexts(call: OperationCall) -> ContextsPage:
    """Rewards and winners by the values of a context field."""
    return await _built(call, contexts_page, call.query.get("field"), call.query.get("slot"))


async def decisions(call: OperationCall) -> DecisionsPage:
    """One decision of a bandit, or the newest ones."""
    asked = call.query.get("id", ""), call.query.get("unit", "")
    return await _built(call, decisions_page, *asked)


async def versions(call: OperationCall) -> m.VersionsPage:
    """The versions of a bandit."""
    return await _built(call, build.versions)


async def health(call: OperationCall) -> m.HealthPage:
    """Whether a bandit works as it should."""
    return await _built(call, build.health)


async def settings(call: OperationCall) -> m.SettingsPage:
    """What is declared of a bandit."""
    return await _built(call, build.settings_page)


async def login(call: OperationCall) -> m.Login:
    """The form to sign in, with a path of this server to go to afterwards."""
    wanted = call.query.get("next", "/")
    local = wanted.startswith("/") and not wanted.startswith("//") and "\\" not in wanted
    return m.Login(wanted if local else "/")


async def sign_in(call: OperationCall) -> Response:
    """Give the browser a cookie instead of the key that it sent."""
    if call.key is None:
        return Response(ENCODER.encode(m.SignedIn("", [])), media_type=JSON)
    cookie = await in_thread(call.service.sessions.begin, call.key)
    answer = ENCODER.encode(m.SignedIn(call.key.name, list(call.key.scopes)))
    header = cookie_header(cookie, secure=call.encrypted)
    return Response(answer, headers={"Set-Cookie": header}, media_type=JSON)


async def sign_out(call: OperationCall) -> Response:
    """Take the cookie away."""
    header = cookie_header("", secure=call.encrypted, seconds=0)
    answer = ENCODER.encode(m.SignedIn("", []))
    return Response(answer, headers={"Set-Cookie": header}, media_type=JSON)
