"""What clients of SMB do meanwhile to the files that requests are about: they open, lock and delete them."""

from contextlib import suppress
from functools import partial

from kyanite.engine.api import Transaction
from kyanite.model.files import tree
from kyanite.model.files.opens import delete_marks, handles
from kyanite.model.files.opens.handles import HandleRequest
from kyanite.model.files.opens.locks import LockedFile, take
from kyanite.model.files.share import ShareKey
from kyanite.model.files.tree import FilePath
from kyanite.rules.byte_locks import Lock
from kyanite.rules.refusals import Refused
from kyanite.rules.share_modes import EVERYTHING, Rights
from tests.services.fuzzing import pool as names
from tests.services.fuzzing.local_server import LocalServer
from tests.services.fuzzing.oddities import Chance
from tests.services.harness import ACCOUNT

_DEAD = b"an SMB host."
_ACCESS = (Rights.READ, Rights.WRITE, Rights.DELETE, EVERYTHING)
_SHARED = (EVERYTHING, EVERYTHING, Rights.READ, Rights(0))


async def act(server: LocalServer, chance: Chance) -> None:
    """Open a file or directory. The process of the client is this one, or one that no longer lives."""
    path = chance.choice((*names.FILES, *names.DIRECTORIES[1:]))
    owner = server.membership.id if chance.random() < 0.7 else _DEAD
    request = HandleRequest(owner, chance.choice(_ACCESS), chance.choice(_SHARED), 7, "192.0.2.1")
    locks = [Lock(0, 100, chance.random() < 0.5, 0)] if chance.random() < 0.2 else []
    is_deleted = chance.random() < 0.1

    def body(tx: Transaction) -> None:
        found = tree.load(tx, FilePath(ShareKey(ACCOUNT.name, "share"), tuple(path.split("/"))), None)
        handle_id = handles.open_handle(tx, found, request).id
        share_id, file_id = found.location.tree.id, found.entry.id
        if locks and not found.entry.is_directory:
            wanted = [each._replace(handle=handle_id) for each in locks]
            take(tx, LockedFile(share_id, file_id, handle_id), wanted)
        if is_deleted:
            delete_marks.mark(tx, found)

    with suppress(Refused):
        await server.engine.run(body, durable=False)


async def close_all(server: LocalServer) -> None:
    """The clients are gone."""
    for owner in (server.membership.id, _DEAD):
        while await server.engine.run(partial(handles.close_handles_of_owner, owner=owner)):
            continue
