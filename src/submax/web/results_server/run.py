"""Starts the server for results."""

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from submax.core.errors import InputError
from submax.web.results_server.app import make_app
from submax.web.results_server.folders import Folders
from submax.web.results_server.options import OPTIONS
from submax.web.server.access.addresses import is_loopback
from submax.web.server.observing.log_setup import set_up_log
from submax.web.server.running.listening import listening_socket
from submax.web.server.running.serve_options import option_value


def show_results(root: Path, given: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Show the result folders below ``root`` until SIGTERM or Ctrl-C.

    The options are ``given`` as texts, then in variables of the environment. The pages have no
    keys, so that only addresses of this machine are allowed.
    """
    host, port = (option_value(one, given, environment) for one in OPTIONS)
    folders = Folders(root)
    if not is_loopback(host):
        raise InputError(
            f"{host} can be reached from other machines, and these pages have no keys: listen on "
            "127.0.0.1, and reach it from another machine by ssh -L",
            code="invalid-option",
        )
    listening = listening_socket(host, port)
    set_up_log("text", "warning")
    # A SIGTERM before the server handles signals ends the process as well.
    signal.signal(signal.SIGTERM, _interrupt)
    host_part = f"[{host}]" if ":" in host else host
    address = f"http://{host_part}:{listening.getsockname()[1]}"
    print(f"submax shows the results in {root} at {address}", file=sys.stderr, flush=True)
    configuration = uvicorn.Config(
        make_app(folders),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    try:
        uvicorn.Server(configuration).run(sockets=[listening])
    except KeyboardInterrupt:
        # Ctrl-C is how these pages are ended, and no failure.
        listening.close()


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.default_int_handler(number, frame)
