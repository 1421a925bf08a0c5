"""Start the server, and stop it gracefully."""

import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn

from submax.core.checks import positive
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.live.bandits.open import default_name, is_new_file, open_store
from submax.live.declaring.declare import check_new, declare_from
from submax.schema.trained_policy import TrainedPolicy
from submax.web.server.access.addresses import is_loopback
from submax.web.server.access.origins import Origins
from submax.web.server.access.trusted_proxies import TrustedProxies
from submax.web.server.app import make_app, quick_endpoints
from submax.web.server.connections.admission import Admission
from submax.web.server.connections.connection_table import ConnectionTable
from submax.web.server.connections.quick_protocol import QuickProtocol
from submax.web.server.interface.request_pipeline import RequestPipeline
from submax.web.server.metrics import Metrics
from submax.web.server.observing.log_setup import set_up_log
from submax.web.server.running.ending import Ending
from submax.web.server.running.listening import listening_socket
from submax.web.server.running.serve_options import ServeOptions, misspelt_variables
from submax.web.server.running.stoppable_server import StoppableServer
from submax.web.server.service import Service

LOG = logging.getLogger("submax")
GRACE_SECONDS = 4
"""How long requests under way may still take after the server was asked to stop."""
SWITCH_SECONDS = 0.0005
"""How long a thread of Python runs before it lets another run; Python's 5 ms would delay writes."""
MAX_CONNECTIONS = 1000
"""Open connections, idle ones too; if there are more, ``ConnectionTable`` closes some of them."""
RESERVED_FILES = 100
"""Files and sockets that the process opens beside connections: the store, exports, libraries."""


def serve(options: ServeOptions) -> None:
    """Serve the bandits of a store until SIGTERM or Ctrl-C; one may start from a learned policy.

    Then no new requests are accepted, those under way are finished and written, and the process
    ends. With ``trust`` the class of the learned policy may be in somebody's own file, which is
    run.
    """
    check_port(options.port)
    positive("rate", options.rate)
    # A wrong value is refused at the start, and not when the first alarm is to be sent.
    learned = options.learned
    if options.telemetry:
        require_extra("telemetry", "--telemetry", "opentelemetry.sdk", "opentelemetry.exporter")
    policy = None if learned is None else TrainedPolicy.read(learned, trust=options.trust)
    service, listening = _opened(options.store, options.host, options.port, policy)
    set_up_log(options.log_format, options.log_level)
    # The writing thread and the answering thread must not wait long for each other.
    sys.setswitchinterval(SWITCH_SECONDS)
    pipeline = RequestPipeline(
        service, options.rate, Metrics(service.opened), Origins(options.origin)
    )
    configuration, ending = configuration_of(service, pipeline, options.proxy), Ending()
    if options.telemetry:
        from submax.web.server.observing.telemetry import Telemetry

        pipeline.telemetry = Telemetry.of_environment()
    # What exists now stays until the end. Looking at all of it would stop all threads for 40
    # milliseconds or more, whenever the collector looks for garbage among old objects.
    gc.collect()
    gc.freeze()
    try:
        # A SIGTERM before the server handles signals must still close the store.
        signal.signal(signal.SIGTERM, partial(_interrupt, ending))
        announce(options, listening.getsockname()[1], service.names())
        StoppableServer(configuration, ending).run(sockets=[listening])
    except KeyboardInterrupt:
        service.close()
    finally:
        if pipeline.telemetry is not None:
            pipeline.telemetry.close()


def announce(options: ServeOptions, port: int, names: list[str]) -> None:
    """Say at which address the server listens, even if only errors are logged."""
    host = f"[{options.host}]" if ":" in options.host else options.host
    place, address = _without_password(options.store), f"http://{host}:{port}"
    said = f"submax serves {place} ({', '.join(names) or 'no bandit yet'}) at {address}"
    if options.log_format == "json":
        fields = {"store": place, "address": address, "bandits": names}
        LOG.info("%s", said, extra={"event": "serving", "fields": fields})
    else:
        print(said, file=sys.stderr, flush=True)
    for sentence in misspelt_variables(os.environ):
        LOG.warning("%s", sentence)


def _interrupt(ending: Ending, number: int, frame: FrameType | None) -> None:
    ending.begin()
    signal.default_int_handler(number, frame)


def configuration_of(
    service: Service, pipeline: RequestPipeline, proxies: Sequence[str]
) -> uvicorn.Config:
    """The configuration of uvicorn; limits on connections and heads are in ``connections``."""
    metrics, most = pipeline.metrics, _most_connections()
    pipeline.authenticator.proxies = TrustedProxies(proxies)
    table = ConnectionTable(most, metrics.count_closed)
    app = make_app(service, pipeline=pipeline)
    admission = Admission(app, service.keys, most, lambda: metrics.count("none", 503))
    protocol = partial(
        QuickProtocol, table=table, endpoints=quick_endpoints(pipeline), admission=admission
    )
    return uvicorn.Config(
        admission,
        http=protocol,  # type: ignore[arg-type]  # makes protocols
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips=list(proxies),
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _most_connections() -> int:
    """The limit on connections; lower if the process may open only few files."""
    try:
        import resource
    except ImportError:
        return MAX_CONNECTIONS
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(1, min(MAX_CONNECTIONS, allowed - RESERVED_FILES))


def _opened(
    place: str | Path, host: str, port: int, learned: TrainedPolicy | None
) -> tuple[Service, socket.socket]:
    """The service and its listening socket; anything wrong is refused before a file is written."""
    name = default_name(place)
    if is_new_file(place):
        # Checked before the store is created; a new store has no keys.
        check_address(host, has_keys=False)
        if learned is not None:
            check_new(name, {}, learned)
    with ExitStack() as undone:
        store = open_store(place)
        undone.callback(store.close)
        service = Service(store)
        check_address(host, service.keys.needed)
        listening = listening_socket(host, port)
        undone.callback(listening.close)
        if learned is not None:
            declare_from(store, name, learned, {})
        undone.pop_all()
    return service, listening


def check_address(host: str, has_keys: bool) -> None:
    """Refuse to listen for other machines if there is no key."""
    if not has_keys and not is_loopback(host):
        raise InputError(
            f"{host} can be reached from other machines, and there is no key: make one first, "
            "submax keys add STORE --scope admin, or listen on 127.0.0.1"
        )


def check_port(port: int) -> None:
    """Refuse a number that is no port; 0 lets the system choose a free port."""
    if not 0 <= port <= 65_535:
        raise InputError(
            f"the port {port} is none: give a number from 0 to 65535; 0 takes a free one"
        )


def _without_password(place: str | Path) -> str:
    """The place of a store, without a password."""
    text = str(place)
    return text if "@" not in text else f"...@{text.rpartition('@')[2]}"
