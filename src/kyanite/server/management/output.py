"""How the command line prints the result of a command."""

import json
from typing import Any

import click


def show(result: Any, *, as_json: bool) -> None:
    """JSON as the server returned it, or a line for each item of a list, or each field of an object if it has any."""
    if as_json:
        click.echo(json.dumps(result, indent=2, ensure_ascii=False))
    elif isinstance(result, list):
        for item in result:
            click.echo(_line(item))
    elif isinstance(result, dict):
        for name, value in result.items():
            if value == "":
                continue
            click.echo(f"{name}: {_line(value)}")
    elif result is not None:
        click.echo(_line(result))


def _line(value: Any) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case None:
            return "none"
        case dict():
            return "  ".join(f"{name}={_line(item)}" for name, item in value.items())
        case list():
            return ",".join(_line(item) for item in value)
        case _:
            return str(value)
