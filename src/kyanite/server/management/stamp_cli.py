"""``kyanite stamp …``: the stamps of a running server."""

from pathlib import Path
from typing import Any

import click

from kyanite.server.management.output import show
from kyanite.server.options import location_option

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(help="The stamps of a running server: stores in which its accounts live.")
def stamp() -> None:
    pass


@stamp.command("list", help="List the stamps.")
@location_option
@_as_json
def list_stamps(location: Path, as_json: bool) -> None:
    show(_call(location, "stamp list"), as_json=as_json)


@stamp.command("add", help="Add a stamp, and serve it without a restart.")
@click.argument("name")
@location_option
@click.option("--engine", metavar="URL", help="Where metadata is kept.  [default: embedded]")
@click.option("--extents", metavar="URL", help="Where content is kept.  [default: local]")
@_as_json
def add(name: str, location: Path, engine: str | None, extents: str | None, as_json: bool) -> None:
    show(_call(location, "stamp add", name=name, engine=engine, extents=extents), as_json=as_json)


def _call(location: Path, command: str, **arguments: object) -> Any:
    from kyanite.server.management.client import call

    return call(location, command, **arguments)
