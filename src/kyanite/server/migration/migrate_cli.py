"""``kyanite migrate``."""

from pathlib import Path

import click

from kyanite.server.options import option

_FILE = click.Path(path_type=Path)


@click.command(
    help="Move all accounts, or some, from one store to another. A store is a folder, and may have a URL for its engine"
    " and one for its extents: repeat --from or --to. Running an interrupted migration again goes on with it."
)
@option(
    "--from", variable="migrate_from", multiple=True, required=True, metavar="FOLDER|URL", help="The source."
)
@option("--to", variable="migrate_to", multiple=True, required=True, metavar="FOLDER|URL", help="The target.")
@click.option(
    "--account", "accounts", multiple=True, metavar="NAME", help="Only this account; may be repeated."
)
@click.option(
    "--from-key-file",
    type=_FILE,
    help="Key that account keys are encrypted with in the source.  [default: a file of the store]",
)
@click.option("--to-key-file", type=_FILE, help="The same for the target.")
@click.option(
    "--give-up", is_flag=True, help="Delete from the target what an unfinished migration has moved."
)
def migrate(
    migrate_from: tuple[str, ...],
    migrate_to: tuple[str, ...],
    accounts: tuple[str, ...],
    from_key_file: Path | None,
    to_key_file: Path | None,
    give_up: bool,
) -> None:
    from kyanite.server.migration.addresses import parse_address
    from kyanite.server.migration.migrate import migrate as run
    from kyanite.server.progress import progress_on_terminal

    source, target = parse_address("--from", migrate_from), parse_address("--to", migrate_to)
    with progress_on_terminal() as progress:
        run(
            source,
            target,
            names=accounts,
            is_given_up=give_up,
            source_key_file=from_key_file,
            target_key_file=to_key_file,
            progress=progress,
        )
