"""``kyanite ls``, ``cp``, ``cat`` and ``rm``: quick looks at what a running server stores.

What is stored is named ``blob://ACCOUNT/CONTAINER/NAME`` or ``file://ACCOUNT/SHARE/PATH``; anything else is a path of
this machine.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kyanite.server.failures import BadUsage, Failure
from kyanite.server.options import DecoratedCommand, location_option
from kyanite.server.terminal import paths
from kyanite.server.terminal.completing import remote_paths
from kyanite.server.terminal.help_sections import examples
from kyanite.server.terminal.paths import RemotePath
from kyanite.server.terminal.running_server import RunningServer, account_key_option

if TYPE_CHECKING:
    from kyanite.server.terminal.remote_items import Item, RemoteItems

_SERVICES = ("blob", "file")
_SEEK = "The server is found by --location (KYANITE_LOCATION); one with --in-memory prints its own."


def _where(command: DecoratedCommand) -> DecoratedCommand:
    return location_option(account_key_option(command))


_recursive = click.option("--recursive", "-r", is_flag=True, help="All that is below, too.")


@contextmanager
def _items(location: Path, account_key: str | None) -> "Iterator[RemoteItems]":
    # Imported here, since help needs nothing of it.
    from kyanite.server.terminal.remote_items import RemoteItems

    items = RemoteItems(RunningServer(location, account_key))
    try:
        yield items
    finally:
        items.close()


# ls


@click.command(
    help=f"List accounts, containers and shares, or what is in them. Blobs are listed by the beginning of their names. "
    f"{_SEEK}",
    epilog=examples(
        "kyanite ls                                      the accounts",
        "kyanite ls blob://devstoreaccount1              its containers",
        "kyanite ls -l blob://devstoreaccount1/photos/2024/",
        "kyanite ls -r file://devstoreaccount1/share",
    ),
)
@click.argument("path", default="", shell_complete=remote_paths)
@_recursive
@click.option("--long", "-l", "is_long", is_flag=True, help="With sizes and times of the last change.")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each.")
@_where
def ls(
    path: str, recursive: bool, is_long: bool, as_json: bool, location: Path, account_key: str | None
) -> None:
    if not path:
        for account in RunningServer(location).description.accounts:
            click.echo(account.name)
        return
    target = paths.parse_remote(path, *_SERVICES)
    with _items(location, account_key) as items:
        for item in _listed(items, target, recursive=recursive):
            click.echo(_line(item, target, is_long=is_long, as_json=as_json))


def _listed(items: "RemoteItems", target: RemotePath, *, recursive: bool) -> "Iterator[Item]":
    if not target.container:
        for container in items.containers(target):
            yield container
            if recursive:
                yield from items.descendants(container.path)
    elif target.service == "file" and target.name and not items.is_directory(target):
        yield items.find(target)
    elif recursive:
        yield from items.descendants(target)
    else:
        yield from _one_level(items, target)


def _one_level(items: "RemoteItems", target: RemotePath) -> "Iterator[Item]":
    """If all that begins so is one folder of that very name, what is in it."""
    found = items.children(target)
    first = next(found, None)
    second = next(found, None)
    if first is not None and second is None and first.is_directory and first.path.name == f"{target.name}/":
        yield from items.children(first.path)
        return
    yield from (each for each in (first, second) if each is not None)
    yield from found


def _line(item: "Item", target: RemotePath, *, is_long: bool, as_json: bool) -> str:
    name = str(item.path) + ("/" if item.is_directory and not item.path.name.endswith("/") else "")
    if as_json:
        import json

        fields = {"path": name, "directory": item.is_directory}
        if not item.is_directory:
            fields |= {"size": item.size}
        if item.modified:
            fields |= {"modified": item.modified, "etag": item.etag}
        return json.dumps(fields, ensure_ascii=False)
    name = _printable(name)
    if not is_long:
        return name
    size = "-" if item.is_directory else str(item.size)
    return f"{size:>14}  {item.modified or '-':<29}  {name}"


def _printable(text: str) -> str:
    """Names are chosen by clients, and a terminal obeys what is in them. What a program reads stays as it is."""
    if not sys.stdout.isatty() or text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


# cat


@click.command(help=f"Write blobs and files to standard output. {_SEEK}")
@click.argument("path", nargs=-1, required=True, shell_complete=remote_paths)
@_where
def cat(path: tuple[str, ...], location: Path, account_key: str | None) -> None:
    targets = [_named(text) for text in path]
    with _items(location, account_key) as items:
        for target in targets:
            for piece in items.stream(target):
                try:
                    sys.stdout.buffer.write(piece)
                    sys.stdout.buffer.flush()
                except BrokenPipeError:
                    _quietly_end()


def _quietly_end() -> None:
    """Whoever read the output has enough of it, as ``head`` has."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0)


def _named(text: str) -> RemotePath:
    target = paths.parse_remote(text, *_SERVICES)
    if not target.name:
        raise BadUsage(f"{text!r} names no blob or file.")
    return target


# rm


@click.command(
    help="Delete blobs and files; with -r directories, everything that begins with a name and a slash, or a whole "
    f"container or share. {_SEEK}",
    epilog=examples(
        "kyanite rm blob://devstoreaccount1/photos/cat.png",
        "kyanite rm -r blob://devstoreaccount1/photos/2024",
        "kyanite rm -r file://devstoreaccount1/share         the share itself",
    ),
)
@click.argument("path", nargs=-1, required=True, shell_complete=remote_paths)
@_recursive
@click.option("--yes", "-y", is_flag=True, help="Do not ask, on a terminal, before -r deletes.")
@_where
def rm(path: tuple[str, ...], recursive: bool, yes: bool, location: Path, account_key: str | None) -> None:
    targets = [paths.parse_remote(text, *_SERVICES) for text in path]
    for target in targets:
        if not target.container:
            raise BadUsage(f"{target} is an account: 'kyanite account remove' removes accounts.")
        if not recursive and (not target.name or target.name.endswith("/")):
            raise BadUsage(f"{target} is not one blob or file: -r deletes all that is in it.")
    if recursive and not yes and sys.stdin.isatty():
        click.confirm(f"Delete {', '.join(map(str, targets))} and all that is below?", abort=True, err=True)
    with _items(location, account_key) as items:
        failed = sum(_delete(items, target, recursive=recursive) for target in targets)
    if failed:
        raise Failure(f"{failed} could not be deleted.")


def _delete(items: "RemoteItems", target: RemotePath, *, recursive: bool) -> int:
    from kyanite.server.terminal.remote_items import Item
    from kyanite.server.terminal.transfers import Transfers

    transfers = Transfers(items, _PARALLEL, lambda count: None)
    items.client(target)
    if not recursive or not target.name:
        whole = Item(target, is_directory=not target.name)
        return transfers.every([whole], lambda item: items.delete(item, with_snapshots=not target.name))
    if target.service == "file":
        return _delete_tree(items, transfers, target)
    below = items.descendants(_as_folder(target))
    failed = transfers.every(below, lambda item: items.delete(item, with_snapshots=True))
    if not target.name.endswith("/"):
        failed += transfers.every(
            _if_there(items, target), lambda item: items.delete(item, with_snapshots=True)
        )
    return failed


def _if_there(items: "RemoteItems", target: RemotePath) -> "list[Item]":
    """A blob of that very name."""
    from kyanite.server.terminal.rest_client import RequestFailed

    try:
        return [items.find(target)]
    except RequestFailed as failure:
        if failure.status == 404:
            return []
        raise


def _delete_tree(items: "RemoteItems", transfers: "Transfers", target: RemotePath) -> int:
    from kyanite.server.terminal.remote_items import Item

    target = replace(target, name=target.name.rstrip("/"))
    if not items.is_directory(target):
        return transfers.every([Item(target)], items.delete)
    below = list(items.children(target))
    failed = transfers.every((item for item in below if not item.is_directory), items.delete)
    failed += sum(_delete_tree(items, transfers, item.path) for item in below if item.is_directory)
    return failed or transfers.every([Item(target, is_directory=True)], items.delete)


def _as_folder(path: RemotePath) -> RemotePath:
    return path if not path.name or path.name.endswith("/") else replace(path, name=f"{path.name}/")


# cp

_PARALLEL = 4

if TYPE_CHECKING:
    from kyanite.server.terminal.transfers import Transfers


@click.command(
    help="Copy between this machine and the server, or within the server. SOURCE may be -, standard input, for a blob; "
    "TARGET may be -, standard output. With -r all that is below SOURCE gets below TARGET. Large ones go in chunks, "
    f"several at a time. {_SEEK}",
    epilog=examples(
        "kyanite cp cat.png blob://devstoreaccount1/photos/",
        "kyanite cp -r --create ./photos blob://devstoreaccount1/photos/2024",
        "kyanite cp -r blob://devstoreaccount1/photos/2024 ./copy",
        "kyanite cp blob://devstoreaccount1/photos/cat.png file://devstoreaccount1/share/cat.png",
        "pg_dump db | kyanite cp - blob://devstoreaccount1/backups/db.sql",
    ),
)
@click.argument("source", shell_complete=remote_paths)
@click.argument("target", shell_complete=remote_paths)
@_recursive
@click.option("--create", is_flag=True, help="Make the container or share of TARGET, if it is not there.")
@click.option(
    "--parallel",
    type=click.IntRange(1, 32),
    default=_PARALLEL,
    show_default=True,
    help="How many files, and how many chunks of each, at a time.",
)
@_where
def cp(
    source: str,
    target: str,
    recursive: bool,
    create: bool,
    parallel: int,
    location: Path,
    account_key: str | None,
) -> None:
    from kyanite.server.progress import progress_on_terminal
    from kyanite.server.terminal.copying import Copy

    ends = paths.parse(source, *_SERVICES), paths.parse(target, *_SERVICES)
    if ends == (None, None):
        raise BadUsage("Neither is on the server: what is stored begins with blob:// or file://.")
    for end, text in zip(ends, (source, target), strict=True):
        if end is not None and not end.container:
            raise BadUsage(f"{text!r} names no {'container' if end.service == 'blob' else 'share'}.")
    with _items(location, account_key) as items, progress_on_terminal() as progress:
        for end in ends:
            if end is not None:
                items.client(end)
        if create and ends[1] is not None:
            items.create_container(ends[1])
        copy = Copy(items, progress, parallel)
        failed = copy.run(ends[0] or source, ends[1] or target, recursive=recursive)
    if failed:
        raise Failure(f"{failed} could not be copied.")
