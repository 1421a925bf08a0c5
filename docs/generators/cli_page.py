"""Write docs/reference/cli.md from the commands themselves: ``make docs``."""

from collections.abc import Iterator
from pathlib import Path

import click

from submax.cli import main

PAGE = Path(__file__).parents[1] / "reference" / "cli.md"


def reference() -> str:
    """The help of every command, as Markdown."""
    context = _context(main, "submax", None)
    parts = ["# Command line", "This page is generated from the commands by `make docs`."]
    parts += [_block(main, context), *_commands(main, context)]
    return "\n\n".join(parts) + "\n"


def _commands(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            inner = _context(command, name, context)
            yield f"## {inner.command_path}"
            yield _block(command, inner)
            if isinstance(command, click.Group):
                yield from _commands(command, inner)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    names = main.context_settings["help_option_names"]
    return click.Context(
        command,
        parent=parent,
        info_name=name,
        terminal_width=90,
        max_content_width=90,
        help_option_names=names,
    )


def _block(command: click.Command, context: click.Context) -> str:
    return f"```text\n{command.get_help(context)}\n```"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
