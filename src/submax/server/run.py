"""Starts the server in this process, and stops it in order.

Granian's embedded server runs in the event loop of this process: one process holds the lock of the
store, so killing it leaves no other behind, and whatever fails at the start reaches the terminal.
"""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from threading import Timer
from typing import Any

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from submax.bandit import declaring
from submax.bandit.durable import default_name, is_new_file
from submax.bandit.settings import new_settings
from submax.bandit.store import open_store
from submax.core.checks import positive
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.schema.trained_policy import TrainedPolicy
from submax.server.access import RATE, is_loopback
from submax.server.app import App
from submax.server.observing import Telemetry, set_up_log
from submax.server.service import Service

LOG = logging.getLogger("submax")
GRACE_SECONDS = 4.0  # for which requests under way may go on when the server was asked to stop
ENDING_SECONDS = 8.0
"""How long the process may take to end in order after SIGTERM: four seconds for requests under way,
one for a fit, and the rest for files. Service managers such as Docker kill after 10 seconds."""
BACKLOG = 2048  # connections that wait to be accepted, so a burst of clients is not refused
HEAD_SECONDS = 10.0  # for which a client may take to send the head of a request
HEAD_BYTES = 65_536  # of the head of a request; a longer one is answered with 431
MAX_CONNECTIONS = 8192  # open ones, also idle; further ones wait until one ends
RESERVED_FILES = 100  # and sockets, beside connections: the store, exports, libraries


def serve(
    store: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    rate: float = RATE,
    learned: Path | None = None,
    trust: bool = False,
    log_format: str = "text",
    log_level: str = "info",
    telemetry: bool = False,
) -> None:
    """Serve the bandits of a store until SIGTERM or Ctrl-C; ``submax serve`` describes the options.

    Then no new requests are accepted, those under way are finished and written, and the process
    ends.
    """
    positive("rate", rate)
    if telemetry:
        require_extra("telemetry", "--telemetry", "opentelemetry.sdk", "opentelemetry.exporter")
    policy = None if learned is None else TrainedPolicy.read(learned, trust=trust)
    service, port = _opened(store, host, port, policy, trust=trust)
    set_up_log(log_format, log_level)
    app = App(service, rate=rate)
    if telemetry:
        app.telemetry = Telemetry.of_environment()
    # What exists now stays until the end. Looking at all of it would stop all threads for 40
    # milliseconds or more, whenever the collector looks for garbage among old objects.
    gc.collect()
    gc.freeze()
    # A SIGTERM before the event loop handles signals must still close the store.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        announce(service, host, port, log_format)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(app, host, port))
    except KeyboardInterrupt:
        LOG.info("stopped during startup")
    finally:
        service.close()
        if app.telemetry is not None:
            app.telemetry.close()


async def _serve(app: App, host: str, port: int) -> None:
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        if not stopping.is_set():
            # Whatever hangs, the process ends; nothing that was acknowledged is lost.
            watchdog = Timer(ENDING_SECONDS, os._exit, [1])
            watchdog.daemon = True
            watchdog.start()
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await serve_until(app, host, port, stopping.wait())


async def serve_until(app: App, host: str, port: int, end: Coroutine[Any, Any, object]) -> None:
    """Serve until ``end`` is over, and then finish what is under way."""
    server = Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=_most_connections(),
        http1_settings=HTTP1Settings(
            header_read_timeout=int(1000 * HEAD_SECONDS), max_buffer_size=HEAD_BYTES
        ),
        log_enabled=False,
    )
    # It says "experimental" at every start.
    logging.getLogger("_granian").setLevel(logging.ERROR)
    serving, ended = asyncio.create_task(server.serve()), asyncio.create_task(end)
    await asyncio.wait([serving, ended], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        ended.cancel()
        serving.result()
        return
    server.stop()  # type: ignore[no-untyped-call]  # Granian has no types here
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(serving, GRACE_SECONDS)
    ended.result()


def announce(service: Service, host: str, port: int, log_format: str) -> None:
    """Say at which address the server listens, even if only errors are logged."""
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    # ``where`` has no password.
    store, names = service.store.where, service.names()
    sentence = f"{store} ({', '.join(names) or 'no bandit yet'}) is served at {address}"
    if log_format == "json":
        fields = {"store": store, "address": address, "bandits": names}
        LOG.info("%s", sentence, extra={"event": "serving", "fields": fields})
    else:
        print(sentence, file=sys.stderr, flush=True)


def _opened(
    place: str, host: str, port: int, learned: TrainedPolicy | None, *, trust: bool
) -> tuple[Service, int]:
    """The service and its port; anything wrong is refused before a file is written."""
    name = default_name(place)
    if is_new_file(place):
        # A new store has no keys.
        check_address(host, has_keys=False)
        if learned is not None:
            new_settings(name, {}, learned)
        free_port(host, port)
    with ExitStack() as undone:
        store = open_store(place)
        undone.callback(store.close)
        service = Service(store, trust=trust)
        check_address(host, service.keys.needed)
        port = free_port(host, port)
        if learned is not None:
            declaring.declare(store, name, {}, trained=learned)
        undone.pop_all()
    return service, port


def check_address(host: str, has_keys: bool) -> None:
    """Refuse to listen for other machines if there is no key."""
    if not has_keys and not is_loopback(host):
        raise InputError(
            f"{host} can be reached from other machines, but there is no key: create one first "
            "(submax keys add --store STORE --scope admin), or listen on 127.0.0.1",
            parameter="host",
        )


def free_port(host: str, port: int) -> int:
    """The port, or a free one for 0; an error if another process listens at the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            # Without this Linux would not notice a socket that shares its port.
            probe.listen(1)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"cannot listen on {host}:{port}: {reason}; give another --port or --host",
                parameter="port",
            ) from error
        return int(probe.getsockname()[1])


def _most_connections() -> int:
    files = MAX_CONNECTIONS + RESERVED_FILES
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = files if most == resource.RLIM_INFINITY else min(files, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return max(1, files - RESERVED_FILES)
