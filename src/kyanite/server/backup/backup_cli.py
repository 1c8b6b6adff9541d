"""``kyanite backup`` and ``kyanite restore``."""

from pathlib import Path

import click

from kyanite.server.options import location_option, option

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(
    help="Back up the store into the folder DESTINATION, while it serves. Every backup is a restore point of one"
    " instant; after the first, only what is new is copied."
)
@click.argument("destination", type=_FOLDER)
@location_option
@option(
    "--keep",
    type=click.IntRange(min=1),
    help="Drop all restore points but the newest so many.  [default: keep all]",
)
@option(
    "--mib-per-second",
    type=click.IntRange(0, 1 << 20),
    default=100,
    show_default=True,
    help="How fast content is copied, so that a server beside it stays fast; 0 for as fast as possible.",
)
def backup(destination: Path, location: Path, keep: int | None, mib_per_second: int) -> None:
    from kyanite.server.backup.backup import backup as run
    from kyanite.server.progress import progress_on_terminal

    with progress_on_terminal() as progress:
        run(location, destination, keep=keep, mib_per_second=mib_per_second, progress=progress)


@click.command(help="Restore a store from the backup in the folder SOURCE, into an empty folder.")
@click.argument("source", type=_FOLDER)
@location_option
@option("--point", metavar="NAME", help="The restore point.  [default: the newest]")
@click.option("--list", "is_list", is_flag=True, help="Show the restore points and restore nothing.")
def restore(source: Path, location: Path, point: str | None, is_list: bool) -> None:
    from kyanite.server.backup.restore import restore as run
    from kyanite.server.backup.restore import show_points
    from kyanite.server.progress import progress_on_terminal

    if is_list:
        show_points(source)
        return
    with progress_on_terminal() as progress:
        run(source, location, name=point, progress=progress)
