"""A share in memory to test the model of files with, and SMB clients that open what is in it."""

from kyanite.engine.api import Engine, Transaction
from kyanite.model.files import directory, file, share, tree
from kyanite.model.files.file import NewFile
from kyanite.model.files.opens import delete_marks, handles, locks, open_files
from kyanite.model.files.opens.handles import HandleRequest
from kyanite.model.files.opens.locks import LockedFile
from kyanite.model.files.opens.records import Handle, OpenFile
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.share import ShareKey, ShareSettings
from kyanite.model.files.tree import FilePath, Found
from kyanite.model.records import HttpHeaders
from kyanite.rules.byte_locks import Lock, Range
from kyanite.rules.share_modes import EVERYTHING, Rights
from tests.model.content.world import outcome

OWNER = b"an SMB host."
SHARE = ShareKey("acme", "share")


def path_of(path: str, key: ShareKey = SHARE) -> FilePath:
    return FilePath(key, tuple(path.split("/")) if path else ())


class FileShare:
    """One share, with operations by path. Paths are texts; the empty one is the root."""

    def __init__(self, engine: Engine, protocol: str = "SMB") -> None:
        self.engine = engine
        settings = ShareSettings(protocol=protocol)
        self.id = outcome(share.create(engine, SHARE, {}, settings, directory.create_root)).id

    def make_directory(self, path: str) -> int:
        return outcome(directory.create(self.engine, path_of(path), SmbProperties(), {}))[0].id

    def make_file(self, path: str, length: int = 0) -> int:
        new_file = NewFile(length, HttpHeaders(), {}, SmbProperties())
        made = file.create(self.engine, path_of(path), new_file, None, may_overwrite=True)
        return outcome(made).entry.id

    def path(self, path: str) -> FilePath:
        return path_of(path)

    def find(self, tx: Transaction, path: str) -> Found:
        return tree.load(tx, path_of(path), None)

    def find_id(self, path: str) -> int:
        return outcome(self.engine.run(lambda tx: self.find(tx, path).entry.id))

    def handle(self, file_id: int, handle_id: int) -> Handle:
        return outcome(
            self.engine.read(lambda snap: open_files.load_handle(snap, self.id, file_id, handle_id))
        )

    def open(
        self,
        path: str,
        access: Rights = Rights.READ,
        shared: Rights = EVERYTHING,
        *,
        owner: bytes = OWNER,
        deletes_on_close: bool = False,
    ) -> Handle:
        request = HandleRequest(owner, access, shared, 7, "192.0.2.1", deletes_on_close)
        return outcome(
            self.engine.run(lambda tx: handles.open_handle(tx, self.find(tx, path), request), durable=False)
        )

    def close(self, file_id: int, handle_id: int) -> bool:
        """Whether that deleted the file."""

        def body(tx: Transaction) -> bool:
            return handles.close_handle(tx, tree.open_tree(tx, SHARE), file_id, handle_id)

        return outcome(self.engine.run(body, durable=False))

    def lock(self, file_id: int, handle_id: int, *new: tuple[int, int, bool]) -> None:
        wanted = [Lock(*each, handle_id) for each in new]
        file = LockedFile(self.id, file_id, handle_id)
        outcome(self.engine.run(lambda tx: locks.take(tx, file, wanted)))

    def unlock(self, file_id: int, handle_id: int, *ranges: Range) -> int:
        file = LockedFile(self.id, file_id, handle_id)
        return outcome(self.engine.run(lambda tx: locks.release(tx, file, ranges)))

    def mark(self, path: str) -> None:
        outcome(self.engine.run(lambda tx: delete_marks.mark(tx, self.find(tx, path))))

    def clear_mark(self, file_id: int) -> None:
        outcome(self.engine.run(lambda tx: delete_marks.clear(tx, self.id, file_id)))

    def open_file(self, file_id: int) -> OpenFile | None:
        return outcome(self.engine.read(lambda snap: open_files.load_open_file(snap, self.id, file_id)))

    def path_of_open_file(self, file_id: int) -> str:
        opened = self.open_file(file_id)
        assert opened is not None
        return opened.path

    def is_pending(self, file_id: int) -> bool:
        opened = self.open_file(file_id)
        return opened is not None and opened.is_delete_pending

    def rows(self, prefix: bytes) -> dict[bytes, bytes]:
        return outcome(self.engine.read(lambda snap: dict(snap.scan(prefix, prefix + b"\xff" * 40))))
