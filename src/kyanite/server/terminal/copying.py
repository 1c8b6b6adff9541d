"""``kyanite cp``: which files go where."""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kyanite.server.failures import BadUsage, Failure
from kyanite.server.progress import Progress
from kyanite.server.terminal.paths import RemotePath
from kyanite.server.terminal.remote_items import Item, RemoteItems
from kyanite.server.terminal.transfers import Transfers

STANDARD = "-"
"""Standard input or output."""


class Copy:
    def __init__(self, items: RemoteItems, progress: Progress, parallel: int) -> None:
        self._items = items
        self._progress = progress
        self._parallel = parallel

    def run(self, source: RemotePath | str, target: RemotePath | str, *, recursive: bool) -> int:
        """Returns how many could not be copied. A single one that fails raises."""
        if isinstance(source, str):
            assert isinstance(target, RemotePath)
            return self._upload(source, target, recursive=recursive)
        if isinstance(target, str):
            return self._download(source, target, recursive=recursive)
        return self._copy(source, target, recursive=recursive)

    def _transfers(self, what: str, total: int | None = None) -> Transfers:
        return Transfers(self._items, self._parallel, self._progress.begin(what, total))

    # To the server

    def _upload(self, source: str, target: RemotePath, *, recursive: bool) -> int:
        if source == STANDARD:
            if recursive or target.service != "blob" or not target.name or target.name.endswith("/"):
                raise BadUsage("Standard input can be copied to one blob: its length is not known before.")
            self._transfers(target.name).upload_stream(sys.stdin.buffer, target)
            return 0
        local = Path(source)
        if not recursive:
            if local.is_dir():
                raise BadUsage(f"{source} is a directory: -r copies what is in it.")
            size = local.stat().st_size
            self._transfers(local.name, size).upload(local, _final(target, local.name))
            return 0
        if not local.is_dir():
            raise BadUsage(f"{source} is not a directory, so there is nothing below it.")
        transfers = self._transfers(source)
        return transfers.every(
            _files_below(local),
            lambda each: transfers.upload(each, _folder(target).below(_relative(each, local))),
        )

    # From the server

    def _download(self, source: RemotePath, target: str, *, recursive: bool) -> int:
        if target == STANDARD:
            if recursive:
                raise BadUsage("Standard output takes one blob or file.")
            for piece in self._items.stream(_one(source)):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return 0
        local = Path(target)
        if not recursive:
            item = self._items.find(_one(source))
            name = source.name.rpartition("/")[2]
            if target.endswith("/") or local.is_dir():
                local = _local(local, name, item)
            self._transfers(name, item.size).download(item, local)
            return 0
        folder = _folder(source)
        transfers = self._transfers(str(source))
        return transfers.every(
            self._items.descendants(folder),
            lambda item: transfers.download(item, _local(local, _below(item, folder), item)),
        )

    # Within the server

    def _copy(self, source: RemotePath, target: RemotePath, *, recursive: bool) -> int:
        if not recursive:
            item = self._items.find(_one(source))
            final = _final(target, source.name.rpartition("/")[2])
            self._transfers(source.name, item.size).copy(item, final)
            return 0
        folder, into = _folder(source), _folder(target)
        if into == folder or (str(into).startswith(str(folder)) and into.container == folder.container):
            raise BadUsage(f"{target} is below {source}, so the copy would never end.")
        transfers = self._transfers(str(source))
        return transfers.every(
            self._items.descendants(folder),
            lambda item: transfers.copy(item, into.below(_below(item, folder))),
        )


def _one(path: RemotePath) -> RemotePath:
    if not path.name or path.name.endswith("/"):
        raise BadUsage(f"{path} is not one blob or file: -r copies all that is in it.")
    return path


def _folder(path: RemotePath) -> RemotePath:
    """As the beginning of the names of what is below it."""
    return path if not path.name or path.name.endswith("/") else replace(path, name=f"{path.name}/")


def _final(target: RemotePath, name: str) -> RemotePath:
    """Below a container or what ends with a slash the name stays."""
    return target.below(name) if not target.name or target.name.endswith("/") else target


def _below(item: Item, folder: RemotePath) -> str:
    return item.path.name.removeprefix(folder.name)


def _local(base: Path, relative: str, item: Item) -> Path:
    """Where it goes on this machine. Clients choose names: none may lead out of the folder."""
    parts = relative.split("/")
    if any(part in ("", ".", "..") or "\0" in part or os.sep in part for part in parts):
        raise Failure(f"{item.path} has a name that cannot be one of a file here.")
    return base.joinpath(*parts)


def _files_below(folder: Path) -> Iterator[Path]:
    """Files, in a stable order. Links to directories are not followed: they may lead in circles."""
    for where, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        for name in sorted(names):
            path = Path(where, name)
            if path.is_file():
                yield path


def _raise(error: OSError) -> None:
    raise error


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()
