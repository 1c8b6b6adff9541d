"""``kyanite verify``: check a store."""

from pathlib import Path

import click

from kyanite.server.options import location_option, option
from kyanite.server.store.api import EMBEDDED, LOCAL, choose_kind


@click.command(
    help="Read everything in a store and check it. A stopped store of an older format is upgraded first."
)
@location_option
@option("--engine", metavar="URL", help=f"Where metadata is kept.  [default: {EMBEDDED}]")
@option("--extents", metavar="URL", help=f"Where content is kept.  [default: {LOCAL}]")
@click.option(
    "--served",
    "is_served",
    is_flag=True,
    help="Beside a server that has the store open. With an engine that several machines share it is always so.",
)
@option("--json", variable="as_json", is_flag=True, help="Print each finding as a line of JSON.")
def verify(location: Path, engine: str | None, extents: str | None, is_served: bool, as_json: bool) -> None:
    from kyanite.server.store.verify import verify as run

    kind = choose_kind(engine, extents, in_memory=False)
    run(location, as_json=as_json, kind=kind, is_served=is_served)
