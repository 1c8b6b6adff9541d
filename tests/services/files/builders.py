"""What tests of the File service begin with: shares, files and open handles, and headers that many requests have."""

from collections.abc import Mapping

from kyanite.engine.api import Transaction
from kyanite.model.files import tree
from kyanite.model.files.opens import delete_marks, handles
from kyanite.model.files.opens.handles import HandleRequest
from kyanite.model.files.opens.locks import LockedFile, take
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import FilePath
from kyanite.rules.byte_locks import Lock
from kyanite.rules.share_modes import EVERYTHING, Rights
from tests.services.harness import Answer, Harness

HOST = "http://localhost:10000/acme"
FILE = {"x-ms-type": "file"}
ID = "11111111-1111-1111-1111-111111111111"
OTHER_ID = "22222222-2222-2222-2222-222222222222"
ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": ID}
SDDL = "O:SYG:SYD:(A;OICI;FA;;;BA)"


async def make(
    files: Harness, path: str = "f", data: bytes = b"", headers: Mapping[str, str] | None = None
) -> dict[str, str]:
    await files("PUT", "/box?restype=share")
    sent = FILE | {"x-ms-content-length": str(len(data))} | dict(headers or {})
    made = await files("PUT", f"/box/{path}", sent)
    assert made.status == 201, made.code
    if data:
        assert (await write(files, path, data)).status == 201
    return dict(made.headers)


async def write(
    files: Harness, path: str, data: bytes, first: int = 0, headers: Mapping[str, str] | None = None
) -> Answer:
    span = f"bytes={first}-{first + len(data) - 1}"
    return await files(
        "PUT",
        f"/box/{path}?comp=range",
        {"x-ms-write": "update", "x-ms-range": span} | dict(headers or {}),
        data,
    )


async def names(files: Harness, path: str = "", query: str = "") -> list[str | None]:
    listed = await files("GET", f"/box/{path}?restype=directory&comp=list{query}")
    assert listed.status == 200, listed.code
    return [each.findtext("Name") for each in listed.xml.find("Entries") or ()]


def source(path: str) -> dict[str, str]:
    return {"x-ms-copy-source": f"{HOST}/box/{path}"}


def rename_from(path: str) -> dict[str, str]:
    return {"x-ms-file-rename-source": f"{HOST}/box/{path}"}


async def open_handle(
    files: Harness,
    path: str = "f",
    access: Rights = Rights.READ,
    shared: Rights = EVERYTHING,
    *,
    locks: tuple[tuple[int, int, bool], ...] = (),
    is_delete_pending: bool = False,
    owner: bytes = b"an SMB host.",
) -> int:
    """Open a file or directory as a client of SMB does, lock ranges of it, and mark it for deletion."""
    names = tuple(path.split("/")) if path else ()

    def body(tx: Transaction) -> int:
        found = tree.load(tx, FilePath(ShareKey("acme", "box"), names), None)
        request = HandleRequest(owner, access, shared, 7, "192.0.2.1")
        handle_id = handles.open_handle(tx, found, request).id
        share_id, file_id = found.location.tree.id, found.entry.id
        if locks:
            wanted = [Lock(*each, handle_id) for each in locks]
            take(tx, LockedFile(share_id, file_id, handle_id), wanted)
        if is_delete_pending:
            delete_marks.mark(tx, found)
        return handle_id

    return await files.engine.run(body, durable=False)
