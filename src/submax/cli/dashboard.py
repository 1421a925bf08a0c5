"""The command that shows results of experiments in a browser."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from submax.cli.commands import main
from submax.cli.server_options import with_options
from submax.web.results_server.options import OPTIONS


@main.command()
@click.argument("results", type=click.Path(path_type=Path), metavar="[RESULTS]", default="results")
@partial(with_options, options=OPTIONS)
def dashboard(results: Path, **given: Any) -> None:
    """Show the results of experiments in a browser, also of a run that is under way.

    RESULTS is the --out of runs, with one folder for each experiment, or one of these folders;
    results if absent. Nothing in it is changed. The pages show how far each run is, curves,
    paired differences of policies and of two folders, and statements with their verdicts.

    Both options can be given as environment variables instead, whose names are in brackets.
    """
    from submax.core.running.extras import require_extra

    require_extra("server", "the dashboard", "starlette", "uvicorn", "jinja2", "pyarrow")
    from submax.web.results_server.run import show_results

    show_results(results, given, os.environ)
