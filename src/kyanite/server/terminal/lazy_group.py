"""A group of commands whose modules are imported when one of them runs, and help in sections.

Help lists commands by the sentences of the table, so it imports none of them either. A command that starts slowly costs
the others nothing.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click
import msgspec


class CommandRow(msgspec.Struct, frozen=True):
    name: str
    target: str
    """Where it is: ``module:attribute``."""
    summary: str
    """What the help of the group says about it."""


class LazyGroup(click.Group):
    def __init__(self, *, sections: Mapping[str, Sequence[CommandRow]], **settings: Any) -> None:
        super().__init__(**settings)
        self._sections = sections
        self._rows = {row.name: row for rows in sections.values() for row in rows}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = self._rows.get(cmd_name)
        if row is None:
            return None
        module, _, attribute = row.target.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> "list[click.shell_completion.CompletionItem]":
        """Names and summaries, without the commands; options, once one is begun."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(row.name, help=row.summary)
            for row in self._rows.values()
            if row.name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self._rows))
        for title, rows in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(row.name.ljust(widest), row.summary) for row in rows])
