"""Write docs/cli.md from the commands themselves: ``make docs``."""

from pathlib import Path

import click

from submax.cli import main

PAGE = Path(__file__).with_name("cli.md")


def reference() -> str:
    """The help of every command, as Markdown."""
    context = click.Context(main, info_name="submax", terminal_width=90, max_content_width=90)
    parts = ["# Command line", "This page is generated from the commands by `make docs`."]
    parts.append(_block(main, context))
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        if command is not None:
            inner = click.Context(
                command, parent=context, info_name=name, terminal_width=90, max_content_width=90
            )
            parts += [f"## submax {name}", _block(command, inner)]
    return "\n\n".join(parts) + "\n"


def _block(command: click.Command, context: click.Context) -> str:
    return f"```text\n{command.get_help(context)}\n```"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
