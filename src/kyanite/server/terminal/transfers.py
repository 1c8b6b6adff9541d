"""Copies between this machine and what is stored: streaming, in parallel, large ones in chunks.

Memory is bounded: so many chunks at a time, and so many files. A blob appears when all of it is there; a local file
gets its name when it is whole.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from kyanite.server.failures import Failure
from kyanite.server.terminal.paths import RemotePath
from kyanite.server.terminal.remote_items import CHUNK_BYTES, Item, RemoteItems, chunk_bytes

Advance = Callable[[int], None]
Job = TypeVar("Job")


class Transfers:
    def __init__(self, items: RemoteItems, parallel: int, advance: Advance) -> None:
        self._items = items
        self._parallel = parallel
        self._advance = advance

    def upload(self, source: Path, target: RemotePath) -> None:
        with source.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if target.service == "file":
                self._upload_file(file, size, target)
            else:
                self.upload_stream(file, target, size)

    def upload_stream(self, file: BinaryIO, target: RemotePath, size: int = 0) -> None:
        """A blob, of a length that need not be known."""
        length = chunk_bytes("blob", size)
        first = _read_full(file, length)
        if len(first) < length:
            self._items.put_blob(target, first)
            self._advance(len(first))
            return
        prefix = os.urandom(6).hex()
        block_ids: list[str] = []

        def chunks() -> Iterator[tuple[str, bytes]]:
            content = first
            while content:
                block_ids.append(f"{prefix}-{len(block_ids):08}")
                yield block_ids[-1], content
                content = _read_full(file, length)

        def send(chunk: tuple[str, bytes]) -> None:
            self._items.put_block(target, *chunk)
            self._advance(len(chunk[1]))

        _run_all(send, chunks(), self._parallel)
        self._items.put_block_list(target, block_ids)

    def _upload_file(self, file: BinaryIO, size: int, target: RemotePath) -> None:
        self._items.create_parents(target)
        self._items.create_file(target, size)

        def chunks() -> Iterator[tuple[int, bytes]]:
            offset = 0
            while offset < size:
                content = _read_full(file, min(CHUNK_BYTES["file"], size - offset))
                if not content:
                    raise Failure(f"{file.name} has become shorter while it was read.")
                yield offset, content
                offset += len(content)

        def send(chunk: tuple[int, bytes]) -> None:
            self._items.put_range(target, *chunk)
            self._advance(len(chunk[1]))

        _run_all(send, chunks(), self._parallel)

    def download(self, item: Item, target: Path) -> None:
        length = CHUNK_BYTES[item.path.service]
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.part")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:

            def fetch(offset: int) -> None:
                content = self._items.read(item, offset, min(length, item.size - offset))
                _write_all(descriptor, content, offset)
                self._advance(len(content))

            try:
                _run_all(fetch, range(0, item.size, length), self._parallel)
            finally:
                os.close(descriptor)
            os.replace(partial, target)
        except BaseException:
            with suppress(OSError):
                partial.unlink()
            raise

    def copy(self, item: Item, target: RemotePath) -> None:
        if target.service == "file":
            self._items.create_parents(target)
        self._items.copy(item.path, target)
        self._advance(item.size)

    def every(self, jobs: Iterable[Job], run: Callable[[Job], None]) -> int:
        """Run the jobs side by side. One that fails is reported, and the others go on. Returns how many failed."""
        failed = 0

        def reported(job: Job) -> None:
            nonlocal failed
            try:
                run(job)
            except (Failure, OSError) as error:
                failed += 1
                print(f"kyanite: {sentence_of(error)}", file=sys.stderr, flush=True)

        _run_all(reported, jobs, self._parallel)
        return failed


def sentence_of(error: Failure | OSError) -> str:
    if isinstance(error, Failure):
        return error.sentence
    return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."


def _run_all(run: Callable[[Job], None], jobs: Iterable[Job], parallel: int) -> None:
    """At most so many at a time, jobs being made no earlier than needed. The first failure ends it."""
    iterator = iter(jobs)
    first = next(iterator, None)
    if first is None:
        return
    second = next(iterator, None)
    if second is None:
        run(first)
        return
    with ThreadPoolExecutor(parallel) as pool:
        pending: set[Future[None]] = {pool.submit(run, first), pool.submit(run, second)}
        for job in iterator:
            while len(pending) > parallel:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                _raise_first(done)
            pending.add(pool.submit(run, job))
        done, _ = wait(pending)
        _raise_first(done)


def _raise_first(done: Iterable[Future[None]]) -> None:
    for future in done:
        future.result()


def _read_full(file: BinaryIO, length: int) -> bytes:
    """So many bytes, or fewer at the end. Pipes return less than is asked for."""
    pieces, missing = [], length
    while missing and (piece := file.read(missing)):
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def _write_all(descriptor: int, content: bytes, offset: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
