"""The commands that run a server: serve and demo."""

from pathlib import Path
from typing import Any

import click

from submax.cli.main import (
    STORE_VARIABLE,
    Option,
    VariableArgument,
    VariableOption,
    main,
    with_options,
)


def option(name: str, kind: Any, text: str, *, default: Any = None) -> Option:
    """An option of the server, which is a variable, too."""
    return click.option(
        f"--{name}",
        cls=VariableOption,
        envvar=f"SUBMAX_{name.replace('-', '_').upper()}",
        show_envvar=True,
        type=kind,
        default=default,
        show_default=default is not None and kind is not bool,
        is_flag=kind is bool,
        help=text,
    )


def _require_server() -> None:
    from submax.core.optional import require_extra

    modules = ("starlette", "granian", "prometheus_client", "jinja2", "pyarrow")
    require_extra("server", "the server", *modules)


class Port(click.IntRange):
    """A port, whose errors are worded like those of other settings."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"must be a whole number from 0 to 65535, not {value!r}", param, ctx)


PORT = Port(0, 65_535)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OPTIONS = (
    option("host", str, "Address to listen on.", default="127.0.0.1"),
    option("port", PORT, "Port to listen on; 0 for any free port.", default=8000),
    option("rate", click.FloatRange(min=0, min_open=True),
           "Maximum requests per second for each key and bandit.", default=20_000.0),
    option("learned", FILE, "A file from submax learn; a bandit starts from this policy."),
    option("trust", bool, "Allow custom policies to run their Python code.",
           default=False),
    option("log-format", click.Choice(["text", "json"], case_sensitive=False),
           "Format of the log: text, or one JSON object per line.", default="text"),
    option("log-level", click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
           "Minimum level of log messages; debug also logs every request.", default="info"),
    option("telemetry", bool, "Send spans of requests, writes and fits with OpenTelemetry (OTLP "
           "over HTTP); needs submax[telemetry].", default=False),
)  # fmt: skip


@main.command()
@click.argument("store", cls=VariableArgument, envvar=STORE_VARIABLE, metavar="[STORE]")
@with_options(*OPTIONS)
def serve(**given: Any) -> None:
    """Serve the bandits of a store over HTTP.

    STORE is a file, which is created if it does not exist, or the URL of a PostgreSQL database.

    With --learned, a new bandit is named after the store, takes its actions and context from the
    policy's log, and starts with the policy. Its other settings are the defaults; to change them,
    call submax.open(STORE, learned=FILE, reward_wait=...) in Python first.

    Every option can also be set by the environment variable in brackets, and STORE by SUBMAX_STORE.
    If _FILE is appended to its name, the variable names a file that contains the value.
    """
    _require_server()
    from submax.server import run

    run.serve(**given)


@main.command()
@click.option("--port", type=PORT, default=0, help="Port to listen on; 0 for any free port.")
def demo(port: int) -> None:
    """Start a demo server with simulated visitors, until Ctrl-C.

    The visitors of a shop see one of five headlines, and change their taste after a while. One
    headline is rewarded late, one never. The server uses a temporary folder, which is deleted at
    the end.
    """
    _require_server()
    from submax.server.demo import run_demo

    run_demo(port)
