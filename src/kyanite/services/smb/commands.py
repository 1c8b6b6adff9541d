"""The commands, one row each: what a request needs before its handler is called, and the handler.

A tree of IPC$ has pipes instead of files, and handlers of its own.
"""

from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import NamedTuple

from kyanite.model.files.opens.caching import BreakNeeded
from kyanite.model.files.opens.waits import REST_SECONDS, after_breaks
from kyanite.services.smb.change_notify import change_notify
from kyanite.services.smb.close import close
from kyanite.services.smb.connections.part_request import Handler, PartRequest
from kyanite.services.smb.controls.ioctl import control
from kyanite.services.smb.create import create
from kyanite.services.smb.info.query_directory import query_directory
from kyanite.services.smb.info.query_info import query_info
from kyanite.services.smb.info.set_info import set_info
from kyanite.services.smb.lock import lock
from kyanite.services.smb.oplock_break import acknowledge
from kyanite.services.smb.pipes import pipe as pipes
from kyanite.services.smb.read import read
from kyanite.services.smb.request import Answer, Failed
from kyanite.services.smb.sessions import trees
from kyanite.services.smb.sessions.negotiate import negotiate
from kyanite.services.smb.sessions.session_setup import log_off, set_up_session
from kyanite.services.smb.sessions.validation import validate_negotiate
from kyanite.services.smb.write import flush, write
from kyanite.wire.smb2 import ioctl, session
from kyanite.wire.smb2.fsctl import Fsctl
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.ioctl import IS_FSCTL
from kyanite.wire.smb2.status import Status


class Needs(Enum):
    """What the connection looks up before it calls a handler; each includes what is above it."""

    NOTHING = 0
    SESSION = 1
    TREE = 2
    OPEN = 3


class CommandRow(NamedTuple):
    needs: Needs
    handler: Handler
    pipe_handler: Handler | None = None
    """For a tree of IPC$. None: INVALID_DEVICE_REQUEST."""


async def echo(request: PartRequest) -> Answer:
    session.decode_empty(request.message)
    return Answer(session.EMPTY)


async def not_built(_request: PartRequest) -> Answer:
    raise Failed(Status.NOT_SUPPORTED)


async def ioctl_on_disk(request: PartRequest) -> Answer:
    call = ioctl.decode(request.message)
    if call.flags == IS_FSCTL and call.code == Fsctl.VALIDATE_NEGOTIATE_INFO:
        return validate_negotiate(request, call)
    return await control(request, call)


def after_writes(handler: Handler) -> Handler:
    """A handler that waits for the WRITEs of the open that came before the request, and for those of other opens that
    were answered before they were committed."""

    async def waiting(request: PartRequest) -> Answer:
        opened = request.found_open
        if opened is None:
            return await handler(request)
        await opened.writes.drained()
        try:
            return await handler(request)
        except BreakNeeded as needed:
            store = opened.tree.account.store
            attempt = partial(handler, request)
            return await after_breaks(store.engine, store.membership, needed, attempt, REST_SECONDS)

    return waiting


async def _by_chain(_request: PartRequest) -> Answer:
    raise AssertionError("A CANCEL is not answered.")


COMMANDS: Mapping[int, CommandRow] = {
    Command.NEGOTIATE: CommandRow(Needs.NOTHING, negotiate),
    Command.SESSION_SETUP: CommandRow(Needs.NOTHING, set_up_session),
    Command.LOGOFF: CommandRow(Needs.SESSION, log_off),
    Command.TREE_CONNECT: CommandRow(Needs.SESSION, trees.connect_tree),
    Command.TREE_DISCONNECT: CommandRow(Needs.TREE, trees.disconnect_tree, trees.disconnect_tree),
    Command.CREATE: CommandRow(Needs.TREE, create, pipes.create),
    Command.CLOSE: CommandRow(Needs.OPEN, close, pipes.close),
    Command.FLUSH: CommandRow(Needs.OPEN, flush, pipes.flush),
    Command.READ: CommandRow(Needs.OPEN, after_writes(read), pipes.read),
    Command.WRITE: CommandRow(Needs.OPEN, write, pipes.write),
    Command.LOCK: CommandRow(Needs.OPEN, lock),
    Command.IOCTL: CommandRow(Needs.OPEN, after_writes(ioctl_on_disk), pipes.ioctl_on_pipe),
    Command.CANCEL: CommandRow(Needs.NOTHING, _by_chain),
    Command.ECHO: CommandRow(Needs.NOTHING, echo),
    Command.QUERY_DIRECTORY: CommandRow(Needs.OPEN, query_directory),
    Command.CHANGE_NOTIFY: CommandRow(Needs.OPEN, change_notify),
    Command.QUERY_INFO: CommandRow(Needs.OPEN, after_writes(query_info), pipes.query_info),
    Command.SET_INFO: CommandRow(Needs.OPEN, after_writes(set_info)),
    Command.OPLOCK_BREAK: CommandRow(Needs.TREE, acknowledge),
}
