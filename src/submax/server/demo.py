"""The demo: a server in a temporary folder, half an hour of past, and visitors who keep coming."""

import asyncio
import contextlib
import logging
import math
import signal
import tempfile
import time
import warnings
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from submax.bandit.durable import open_bandit
from submax.bandit.rewards import LateRewardWarning
from submax.bandit.store import open_store
from submax.client.client import AsyncClient
from submax.core.checks import positive, whole_number
from submax.core.errors import InputError, StoreError
from submax.server.app import App
from submax.server.pages.routes import Pages
from submax.server.run import free_port, loop_factory, serve_until
from submax.server.service import Service

NAME = "demo"
"""The name of the bandit."""
ACTIONS = ("plain", "bold", "playful", "slow", "broken")
DEVICES, COUNTRIES = ("phone", "desk"), ("de", "fr")
ALIKE = {"plain": 0.10, "slow": 0.20, "broken": 0.0}
"""The chance that a visitor buys, by headline, whoever it is."""
LIKED, DISLIKED = 0.35, 0.05
"""The same of the two headlines about which tastes differ, bold and playful."""
QUICK, SLOW = (0.2, 2.0), (3.0, 8.0)
"""Seconds, from and to, after which a purchase is known: of most headlines, and of ``slow``."""
REWARD_WAIT = 5.0
"""Seconds after which a decision is learned from: three fifths of the purchases by ``slow`` come
later, and are counted as late."""
VISITORS = 4_000
"""Visitors who come back again and again; a tenth of them always see the plain headline."""
HALF_TIME = 300.0
"""Seconds until visitors change their taste, if the demo has no end of its own."""
PAST_SECONDS, STEPS, VISITS = 1800.0, 60, 75
"""How long visitors came before the demo, in so many steps, each with so many visits."""
HOST = "127.0.0.1"
MOST_VISITORS = 200.0
"""Visits a second, so the demo leaves something of the machine to others."""
REPORT_SECONDS = 5.0
"""How often a line says what happened since the last one."""
MOST_UNDER_WAY = 2000
"""Visits whose rewards are still awaited; if there are more, no new visitor comes in."""
INTRODUCTION = """\
Simulated visitors of a shop see one of five headlines. {end}
Open this address:

  {address}/

and find out from the pages: Which headline sells best to whom? What does the bandit gain over
always showing the plain headline? Which headline is broken? How late do rewards come?
The visitors' taste changes after {half_time:g} s: what does the bandit do then?
"""


class Visitor(NamedTuple):
    """A visitor, who is always on the same device and in the same country."""

    unit: str
    device: str
    country: str

    @property
    def context(self) -> dict[str, Any]:
        """What the bandit is told."""
        return {"device": self.device, "country": self.country}


class VisitOutcome(NamedTuple):
    """What a visitor did: the reward, and the seconds until it is known; no reward: None."""

    reward: float | None
    delay: float


@dataclass(frozen=True)
class DemoWorld:
    """A shop with five headlines, whose visitors change their taste every ``half_time`` seconds.

    At first German phones like the headline ``bold`` and all others ``playful``; then it is the
    other way round. The headline ``slow`` is liked by all, but its purchases are known late. The
    headline ``broken`` never gets a reward, as if its button did not work.
    """

    half_time: float

    def declaration(self) -> dict[str, Any]:
        """The bandit, as it is declared; it forgets, because visitors change."""
        return {
            "actions": list(ACTIONS),
            "context": {"device": list(DEVICES), "country": list(COUNTRIES)},
            "policy": {"kind": "posterior-submax", "memory": {"discount": 0.999}},
            "reward_wait": REWARD_WAIT,
            "default_reward": 0.0,
            "refit_rows": 50,
            "refit_seconds": 2.0,
            "guard_rails": {"minimum": 0.03, "holdout": 0.1, "baseline": "plain"},
        }

    def visitor(self, rng: np.random.Generator) -> Visitor:
        """One of the visitors."""
        number = int(rng.integers(VISITORS))
        return Visitor(f"visitor-{number}", DEVICES[number % 5 // 3], COUNTRIES[number % 2])

    def drifted(self, seconds: float) -> bool:
        """Whether visitors have the second taste at this time."""
        return int(seconds // self.half_time) % 2 == 1

    def liked(self, visitor: Visitor, seconds: float) -> str:
        """The headline that a visitor likes best at a time."""
        german_phone = (visitor.device, visitor.country) == ("phone", "de")
        return "bold" if german_phone != self.drifted(seconds) else "playful"

    def chance(self, action: str, visitor: Visitor, seconds: float) -> float:
        """The chance that a visitor who sees the headline buys, ``seconds`` after the beginning."""
        if action in ALIKE:
            return ALIKE[action]
        return LIKED if action == self.liked(visitor, seconds) else DISLIKED

    def outcome(
        self, action: str, visitor: Visitor, seconds: float, rng: np.random.Generator
    ) -> VisitOutcome:
        """What a visitor does. One who does not buy is known as such only by waiting."""
        bought = rng.random() < self.chance(action, visitor, seconds)
        low, high = SLOW if action == "slow" else QUICK
        return VisitOutcome(1.0 if bought else None, float(rng.uniform(low, high)))


def make_past(file: Path, world: DemoWorld, rng: np.random.Generator) -> None:
    """Declare the bandit of the demo in a new store, and let visitors come in the past."""
    now = [time.time() - PAST_SECONDS]
    bandit = open_bandit(
        file, name=NAME, background=False, clock=lambda: now[0], rng=rng, **world.declaration()
    )
    with bandit, warnings.catch_warnings():
        # One headline has late rewards on purpose.
        warnings.simplefilter("ignore", LateRewardWarning)
        for _ in range(STEPS):
            begin, coming = now[0], defaultdict[int, list[str]](list)
            visitors = [world.visitor(rng) for _ in range(VISITS)]
            made = bandit.decide_many(
                [{"context": one.context, "unit": one.unit} for one in visitors]
            )
            for decision, visitor in zip(made, visitors, strict=True):
                outcome = world.outcome(str(decision.action), visitor, 0.0, rng)
                if outcome.reward is not None:
                    coming[math.ceil(outcome.delay)].append(decision.id)
            # The rewards of a second are sent together, in its middle.
            for second, identifiers in sorted(coming.items()):
                now[0] = begin + second - 0.5
                bandit.reward_many([{"id": one, "value": 1.0} for one in identifiers])
            now[0] = begin + PAST_SECONDS / STEPS
            bandit.refit()
        bandit.summarize()


class Visitors:
    """Visitors of a world who come ``rate`` times a second, and what has become of them."""

    def __init__(
        self, world: DemoWorld, client: AsyncClient, rate: float, rng: np.random.Generator
    ) -> None:
        self._world, self._client, self._rate, self._rng = world, client, rate, rng
        self._under_way: set[asyncio.Task[None]] = set()
        self._shown: deque[str] = deque(maxlen=max(20, round(rate * REPORT_SECONDS)))
        self._visits, self._sold = 0, 0

    async def come(self, seconds: float | None) -> None:
        """Let visitors come for some seconds, or forever, and report now and then."""
        begin = reported = time.monotonic()
        try:
            while seconds is None or time.monotonic() - begin < seconds:
                now = time.monotonic()
                if len(self._under_way) < MOST_UNDER_WAY:
                    task = asyncio.create_task(self._visit(now - begin))
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)
                if now - reported >= REPORT_SECONDS:
                    reported = now
                    self._report(now - begin)
                await asyncio.sleep(float(self._rng.exponential(1 / self._rate)))
            # The last moment still belongs to the second half.
            self._report(math.nextafter(seconds, 0))
        finally:
            # Rewards that are not known yet are not sent.
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)

    def _report(self, seconds: float) -> None:
        """Say what was shown lately, and how much was sold since the beginning."""
        shown = Counter(self._shown)
        shares = [f"{name} {shown[name] / max(len(self._shown), 1):.0%}" for name in ACTIONS]
        taste = "second taste" if self._world.drifted(seconds) else "first taste"
        click.echo(
            f"{seconds:5.0f} s, {taste}: {self._visits} visits, {self._sold} sold; shown lately: "
            f"{', '.join(shares)}"
        )

    async def _visit(self, seconds: float) -> None:
        visitor = self._world.visitor(self._rng)
        # A visitor is lost while the server is being stopped, or is busy, and others come.
        with contextlib.suppress(StoreError):
            decision = await self._client.decide(visitor.context, unit=visitor.unit)
            action = str(decision.action)
            self._visits += 1
            self._shown.append(action)
            outcome = self._world.outcome(action, visitor, seconds, self._rng)
            await asyncio.sleep(outcome.delay)
            if outcome.reward is not None:
                await self._client.reward(decision.id, outcome.reward)
                self._sold += 1


def run_demo(port: int, seconds: float | None, rate: float, seed: int) -> None:
    """Run the demo for some seconds, or until Ctrl-C; nothing is left behind."""
    if not 0 < rate <= MOST_VISITORS:
        raise InputError(
            f"--visitors was {rate:g}: give a number above 0 and at most "
            f"{MOST_VISITORS:g}, such as 20"
        )
    if seconds is not None:
        positive("--for", seconds)
    whole_number("--seed", seed, at_least=0)
    world = DemoWorld(HALF_TIME if seconds is None else seconds / 2)
    port, rng = free_port(HOST, port), np.random.default_rng(seed)
    address = f"http://{HOST}:{port}"
    # What a server says about late rewards is on its pages.
    logging.getLogger("submax").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="submax-demo-") as folder:
        click.echo("Half an hour of visits is being simulated …")
        file = Path(folder) / f"{NAME}.db"
        make_past(file, world, rng)
        service = Service(open_store(file))
        visits = _visits(world, address, service, seconds, rate, rng)
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(serve_until(App(service, pages=Pages), HOST, port, visits))
        finally:
            service.close()
        click.echo("The demo has ended, and its folder is deleted.")


async def _visits(
    world: DemoWorld,
    address: str,
    service: Service,
    seconds: float | None,
    rate: float,
    rng: np.random.Generator,
) -> None:
    """Let visitors come until the time is over, or a signal asks to stop."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        while not service.ready:
            await asyncio.sleep(0.05)
        end = "Ctrl-C ends the demo." if seconds is None else f"The demo ends after {seconds:g} s."
        click.echo(INTRODUCTION.format(address=address, end=end, half_time=world.half_time))
        async with AsyncClient(address, NAME, deadline=10.0) as client:
            await Visitors(world, client, rate, rng).come(seconds)
