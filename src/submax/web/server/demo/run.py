"""Runs the demo: a server in a temporary folder, and visitors."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import click
import numpy as np

from submax.client.client import AsyncClient
from submax.core.checks import positive, whole_number
from submax.core.errors import InputError, StoreError
from submax.web.server.demo.past import make_past
from submax.web.server.demo.visitors import Visitors
from submax.web.server.demo.world import NAME, DemoWorld

HALF_TIME = 300.0
"""Seconds until visitors change their taste, if the demo has no end of its own."""
READY_SECONDS, STOP_SECONDS = 60.0, 15.0
"""How long the server may take to be ready, and to stop."""
MOST_VISITORS = 200.0
"""Visitors a second, so that the demo leaves something of the machine to others."""


def run_demo(port: int, seconds: float | None, rate: float, seed: int) -> None:
    """Run the demo for some seconds, or until Ctrl-C; nothing is left behind."""
    if not 0 < rate <= MOST_VISITORS:
        raise InputError(
            f"--visitors was {rate:g}, and a number above 0 and at most {MOST_VISITORS:g} is "
            "allowed: give for example 20"
        )
    if seconds is not None:
        positive("--for", seconds)
    whole_number("--seed", seed, at_least=0)
    # A process in the background ignores Ctrl-C unless it says otherwise; SIGTERM ends it, too.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    world = DemoWorld(HALF_TIME if seconds is None else seconds / 2)
    with tempfile.TemporaryDirectory(prefix="submax-demo-") as folder:
        file = Path(folder) / f"{NAME}.db"
        rng = np.random.default_rng(seed)
        click.echo("Half an hour of visits is being simulated …")
        make_past(file, world, rng)
        with _server(file, port) as address:
            click.echo(_introduction(address, seconds, world))
            with contextlib.suppress(KeyboardInterrupt, asyncio.CancelledError):
                asyncio.run(_visits(world, address, seconds, rate, rng))
            click.echo("The demo ends, and its folder is deleted.")


async def _visits(
    world: DemoWorld,
    address: str,
    seconds: float | None,
    rate: float,
    rng: np.random.Generator,
) -> None:
    task = asyncio.current_task()
    assert task is not None
    # Windows has no handlers of event loops, and there Ctrl-C is a KeyboardInterrupt.
    with contextlib.suppress(NotImplementedError):
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with AsyncClient(address, NAME, deadline=10.0) as client:
        visitors = Visitors(world, client, rate, rng)
        try:
            await visitors.come(seconds, click.echo)
        finally:
            await visitors.leave()


@contextlib.contextmanager
def _server(file: Path, port: int) -> Iterator[str]:
    """The address of a server on the file, in a process of its own."""
    command = [sys.executable, "-m", "submax", "serve", str(file), "--port", str(port)]
    log = file.with_suffix(".log")
    # Ctrl-C is for the demo, which then stops the server.
    with (
        log.open("w") as said,
        subprocess.Popen(command, stderr=said, start_new_session=True) as process,
    ):
        try:
            address = _address(process, log)
            _wait_until_ready(address)
            yield address
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """The address that the server has written into its log."""
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        lines = log.read_text().splitlines()
        addresses = [line.rpartition(" ")[2] for line in lines if line.startswith("submax serves")]
        if addresses:
            return addresses[0]
        if process.poll() is not None:
            raise InputError(" ".join(lines).removeprefix("Error: ") or "the server did not start")
        time.sleep(0.05)
    raise StoreError(f"the server said no address within {READY_SECONDS:g} seconds: try again")


def _wait_until_ready(address: str) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urlopen(f"{address}/readyz", timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(0.05)
    raise StoreError(f"the server at {address} is not ready after {READY_SECONDS:g} seconds")


def _introduction(address: str, seconds: float | None, world: DemoWorld) -> str:
    end = "Ctrl-C ends the demo." if seconds is None else f"The demo ends after {seconds:g} s."
    return f"""\
Simulated visitors of a shop see one of five headlines. {end}
Open this address:

  {address}/

and find out from the pages: Which headline sells best, and by how much? What does the bandit
gain over always showing the plain headline? Which headline is broken? How late do rewards come?
The visitors' taste changes after {world.half_time:g} s: what does the bandit do then?
"""
