"""The command line as tables: every command, its options, their environment variables and keys of the TOML file."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import click

from documentation.markdown import code, table
from kyanite.server.cli import kyanite
from kyanite.server.terminal.help_sections import SectionedCommand

_DEFAULT = re.compile(r"\s*\[default: ([^\]]*)\]")
_NOT_IN_FILE = ("config", "accounts")
"""Options of ``kyanite serve`` that the table ``[server]`` of the file does not have."""


_NO_CONTEXT = click.Context(kyanite)


class CommandRow(NamedTuple):
    path: str
    """``account add``, without the name of the program."""
    command: click.Command


def commands() -> list[CommandRow]:
    """Those that do something, with the groups that they are in resolved."""
    return [row for row in _walk("", kyanite) if not isinstance(row.command, click.Group)]


def _walk(path: str, command: click.Command) -> Iterator[CommandRow]:
    if path:
        yield CommandRow(path, command)
    if isinstance(command, click.Group):
        for name in command.list_commands(_NO_CONTEXT):
            below = subcommand(command, name)
            if below is not None and not below.hidden:
                yield from _walk(f"{path} {name}".strip(), below)


def subcommand(group: click.Group, name: str) -> click.Command | None:
    return group.get_command(_NO_CONTEXT, name)


def options_of(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def all_options() -> set[str]:
    """Every option of every command, and those that click adds."""
    found = {"--help", "--version"}
    for row in _walk("", kyanite):
        for option in options_of(row.command):
            found.update((*option.opts, *option.secondary_opts))
    return found


def all_variables() -> set[str]:
    rows = [option for row in commands() for option in options_of(row.command)]
    return {str(option.envvar) for option in rows if option.envvar}


def serve_table() -> str:
    """The options of ``kyanite serve``, in the sections of its help."""
    command = subcommand(kyanite, "serve")
    assert isinstance(command, SectionedCommand)
    remaining = {option.name or "": option for option in options_of(command)}
    tables = []
    for title, names in {**command.sections, "Others": tuple(remaining)}.items():
        rows = [_serve_row(remaining.pop(name), command) for name in names if name in remaining]
        if rows:
            headings = ("option", "variable", "key in `[server]`", "values", "default", "meaning")
            tables.append(f"### {title}\n\n{table(headings, rows)}")
    return "\n\n".join(tables)


def _serve_row(option: click.Option, command: click.Command) -> list[str]:
    return [
        " ".join(map(code, option.opts)),
        code(str(option.envvar or "")),
        "" if option.name in _NOT_IN_FILE else code(option.name or ""),
        _values(option, command),
        _default(option, command),
        _meaning(option),
    ]


def command_tables() -> str:
    """All other commands, each with its usage and its options."""
    return "\n\n".join(_command(row) for row in commands() if row.path != "serve")


def _command(row: CommandRow) -> str:
    with click.Context(row.command, info_name=f"kyanite {row.path}") as context:
        usage = " ".join(row.command.collect_usage_pieces(context))
    lines = [f"### kyanite {row.path}", "", _sentence(row.command), "", code(f"kyanite {row.path} {usage}")]
    options = options_of(row.command)
    if options:
        cells = [
            [
                " ".join(map(code, (*option.opts, *option.secondary_opts))),
                code(str(option.envvar or "")),
                _values(option, row.command),
                _default(option, row.command),
                _meaning(option),
            ]
            for option in options
        ]
        lines += ["", table(("option", "variable", "values", "default", "meaning"), cells)]
    return "\n".join(lines)


def _sentence(command: click.Command) -> str:
    text = (command.help or command.short_help or "").split("\b")[0].strip()
    return " ".join(text.split())


def _meaning(option: click.Option) -> str:
    return _DEFAULT.sub("", option.help or "").strip()


def _default(option: click.Option, command: click.Command) -> str:
    in_help = _DEFAULT.search(option.help or "")
    if in_help:
        return in_help[1]
    if option.is_flag:
        return "off"
    if option.required:
        return "needed"
    if not option.show_default:
        return ""
    value = option.get_default(click.Context(command), call=True)
    return str(value)


def _values(option: click.Option, command: click.Command) -> str:
    match option.type:
        case click.Choice(choices=choices):
            return ", ".join(code(str(choice)) for choice in choices)
        case click.IntRange(min=low, max=high) | click.FloatRange(min=low, max=high) if high is not None:
            return f"{low:,} to {high:,}"
        case click.IntRange(min=low) | click.FloatRange(min=low):
            return f"{low:,} or more"
        case click.Path():
            return "a path"
        case _ if option.is_flag:
            return ""
        case _:
            return code(option.metavar or option.make_metavar(click.Context(command)))
