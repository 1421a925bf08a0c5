"""The demo: a server in a temporary folder, half an hour of past, and visitors who keep coming."""

import asyncio
import contextlib
import logging
import math
import signal
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import uvloop

from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.client.client import AsyncClient
from submax.core.errors import StoreError
from submax.server.app import App
from submax.server.run import free_port, serve_until
from submax.server.service import Service

NAME, HOST = "demo", "127.0.0.1"
ACTIONS = ("plain", "bold", "playful", "slow", "broken")
DEVICES, COUNTRIES = ("phone", "desk"), ("de", "fr")
# The chance that a visitor buys, by headline, whoever it is; and of bold and playful, about which
# tastes differ.
ALIKE = {"plain": 0.10, "slow": 0.20, "broken": 0.0}
LIKED, DISLIKED = 0.35, 0.05
# Seconds, from and to, after which a purchase is known: of most headlines, and of ``slow``.
QUICK, SLOW = (0.2, 2.0), (3.0, 8.0)
REWARD_WAIT = 5.0
"""Seconds after which a decision is learned from: three fifths of the purchases by ``slow`` come
later, and are counted as late."""
VISITORS = 4_000  # who come back again and again; a tenth of them always see the plain headline
VISITS_A_SECOND = 20.0
HALF_TIME = 300.0  # seconds after which visitors change their taste
PAST_SECONDS, STEPS, VISITS = 1800.0, 60, 75
"""How long visitors came before the demo, in so many steps, each with so many visits."""
INTRODUCTION = f"""\
Simulated visitors of a shop see one of five headlines. Press Ctrl-C to end the demo.
Open this URL:

  {{address}}/

Then find out: Which headline sells best, and to whom? What does the bandit gain over always
showing the plain headline? Which headline is broken? How late do rewards arrive?
The visitors' taste changes after {HALF_TIME:g} s: how does the bandit respond?
"""
DECLARATION: dict[str, Any] = {
    "actions": list(ACTIONS),
    "context": {"device": list(DEVICES), "country": list(COUNTRIES)},
    # It forgets, because visitors change.
    "policy": {"kind": "posterior-submax", "memory": {"discount": 0.999}},
    "reward_wait": REWARD_WAIT,
    "default_reward": 0.0,
    "refit_rows": 50,
    "refit_seconds": 2.0,
    "guard_rails": {"minimum": 0.03, "holdout": 0.1, "baseline": "plain"},
}


class Visitor(NamedTuple):
    """A visitor, who is always on the same device and in the same country.

    At first German phones like the headline ``bold`` and all others ``playful``; then it is the
    other way round. The headline ``slow`` is liked by all, but its purchases are known late. The
    headline ``broken`` never gets a reward, as if its button did not work.
    """

    unit: str
    device: str
    country: str

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> "Visitor":
        number = int(rng.integers(VISITORS))
        return cls(f"visitor-{number}", DEVICES[number % 5 // 3], COUNTRIES[number % 2])

    @property
    def request(self) -> dict[str, Any]:
        return {"context": {"device": self.device, "country": self.country}, "unit": self.unit}

    def outcome(self, action: str, seconds: float, rng: np.random.Generator) -> tuple[bool, float]:
        """Whether the visitor buys, and after how many seconds that is known."""
        german_phone = (self.device, self.country) == ("phone", "de")
        second_taste = seconds // HALF_TIME % 2 == 1
        liked = "bold" if german_phone != second_taste else "playful"
        chance = ALIKE.get(action, LIKED if action == liked else DISLIKED)
        low, high = SLOW if action == "slow" else QUICK
        return rng.random() < chance, float(rng.uniform(low, high))


def make_past(file: Path, rng: np.random.Generator) -> None:
    """Declare the bandit of the demo in a new store, and let visitors come in the past."""
    now = [time.time() - PAST_SECONDS]
    bandit = open_bandit(
        file, name=NAME, background=False, clock=lambda: now[0], rng=rng, **DECLARATION
    )
    with bandit:
        for _ in range(STEPS):
            begin, coming = now[0], defaultdict[int, list[str]](list)
            visitors = [Visitor.drawn(rng) for _ in range(VISITS)]
            made = bandit.decide_many([one.request for one in visitors])
            for decision, visitor in zip(made, visitors, strict=True):
                bought, delay = visitor.outcome(str(decision.action), 0.0, rng)
                if bought:
                    coming[math.ceil(delay)].append(decision.id)
            # The rewards of a second are sent together, in its middle.
            for second, identifiers in sorted(coming.items()):
                now[0] = begin + second - 0.5
                bandit.reward_many([{"id": one, "value": 1.0} for one in identifiers])
            now[0] = begin + PAST_SECONDS / STEPS
            bandit.refit()
        bandit.summarize()


async def let_visitors_come(client: AsyncClient, rng: np.random.Generator) -> None:
    """Let visitors come forever."""
    begin = time.monotonic()

    async def visit() -> None:
        visitor, at = Visitor.drawn(rng), time.monotonic() - begin
        # A visitor is lost while the server is being stopped, or is busy, and others come.
        with contextlib.suppress(StoreError):
            decision = await client.decide(**visitor.request)
            bought, delay = visitor.outcome(str(decision.action), at, rng)
            await asyncio.sleep(delay)
            if bought:
                await client.reward(decision.id, 1.0)

    async with asyncio.TaskGroup() as tasks:
        while True:
            tasks.create_task(visit())
            await asyncio.sleep(float(rng.exponential(1 / VISITS_A_SECOND)))


def run_demo(port: int) -> None:
    """Run the demo until Ctrl-C; nothing is left behind."""
    port, rng = free_port(HOST, port), np.random.default_rng(0)
    address = f"http://{HOST}:{port}"
    # What a server says about late rewards is on its pages.
    logging.getLogger("submax").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="submax-demo-") as folder:
        click.echo("Half an hour of visits is being simulated …")
        file = Path(folder) / f"{NAME}.db"
        make_past(file, rng)
        service = Service(open_store(file))

        async def visits() -> None:
            task, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert task is not None
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, task.cancel)
            with contextlib.suppress(asyncio.CancelledError):
                while not service.ready:
                    await asyncio.sleep(0.05)
                click.echo(INTRODUCTION.format(address=address))
                async with AsyncClient(address, NAME, deadline=10.0) as client:
                    await let_visitors_come(client, rng)

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve_until(App(service), HOST, port, visits()))
        finally:
            service.close()
        click.echo("The demo has ended; its folder is being deleted.")
