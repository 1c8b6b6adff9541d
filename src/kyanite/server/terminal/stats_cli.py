"""``kyanite stats``: how much the accounts of a running server store, and what is leased or open."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from kyanite.server.options import location_option
from kyanite.server.terminal import completing
from kyanite.server.terminal.help_sections import examples
from kyanite.server.terminal.running_server import RunningServer

_LINES = (
    ("containers", "containers", None, "containers_leased"),
    ("blobs", "blobs", "blob_bytes", "blobs_leased"),
    ("snapshots", "snapshots", "snapshot_bytes", None),
    ("previous versions", "versions", "version_bytes", None),
    ("soft-deleted blobs", "deleted_blobs", "deleted_blob_bytes", None),
    ("uncommitted blocks", "uncommitted_blocks", None, None),
    ("queues", "queues", None, None),
    ("messages", "messages", None, None),
    ("tables", "tables", None, None),
    ("entities", "entities", None, None),
    ("shares", "shares", None, "shares_leased"),
    ("directories", "directories", None, None),
    ("files", "files", "file_bytes", "files_leased"),
    ("share snapshots", "share_snapshots", None, None),
    ("open files", "open_files", None, None),
    ("open handles", "open_handles", None, None),
    ("pending deletes", "pending_deletes", None, None),
)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@click.command(
    help="Count what the accounts of the running server store: numbers and sizes, leases in force, open SMB handles. "
    "The server reads the records of all of it, a little at a time, so the figures are of the moments in which they "
    "were read. Sizes are lengths as clients know them; copies and snapshots may share their bytes on disk. The server "
    "is found by --location (KYANITE_LOCATION); one with --in-memory prints its own.",
    epilog=examples("kyanite stats", "kyanite stats --account devstoreaccount1 --json"),
)
@click.option(
    "--account",
    "accounts",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.accounts,
    help="Only this account; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@location_option
def stats(accounts: tuple[str, ...], as_json: bool, location: Path) -> None:
    server = RunningServer(location)
    for name in accounts:
        server.check_account(name)
    names = accounts or tuple(sorted(account.name for account in server.description.accounts))
    figures = {name: _figures(location, name) for name in names}
    if as_json:
        import json

        click.echo(json.dumps(figures, indent=2))
        return
    for name, found in figures.items():
        click.echo(name)
        for line in _lines(found):
            click.echo(f"  {line}")


def _figures(location: Path, account: str) -> dict[str, int]:
    from kyanite.model.statistics import NAMES
    from kyanite.server.management.client import call

    counts: Counter[str] = Counter()
    cursor: Any = {}
    while cursor is not None:
        page = call(location, "account stats", account=account, cursor=cursor)
        counts.update(page["figures"])
        cursor = page["cursor"]
    return {name: counts[name] for name in NAMES}


def _lines(figures: dict[str, int]) -> list[str]:
    """What there is. An empty account says so."""
    lines = []
    for title, name, size, leased in _LINES:
        if not figures[name]:
            continue
        words = [f"{title:<18}", f"{figures[name]:>12,}", f"{_readable(figures[size]) if size else '':>11}"]
        if leased and figures[leased]:
            words.append(f" {figures[leased]:,} leased")
        lines.append(" ".join(words).rstrip())
    return lines or ["nothing"]


def _readable(count: float) -> str:
    power = 0
    while count >= 1024 and power + 1 < len(_UNITS):
        count, power = count / 1024, power + 1
    return f"{count:.{1 if power else 0}f} {_UNITS[power]}"
