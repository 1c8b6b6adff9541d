"""Help that people can read: options in sections, and examples below."""

from collections.abc import Mapping, Sequence
from typing import Any

import click


def examples(*lines: str) -> str:
    """What a command has as its epilog: the lines as they are, below a heading."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class SectionedCommand(click.Command):
    """A command with many options. Those that no section names come last."""

    def __init__(self, *, sections: Mapping[str, Sequence[str]], **settings: Any) -> None:
        super().__init__(**settings)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        remaining = {param.name: param for param in self.get_params(ctx)}
        for title, names in {**self.sections, "Others": tuple(remaining)}.items():
            found = [remaining.pop(name) for name in names if name in remaining]
            rows = [row for param in found if (row := param.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
