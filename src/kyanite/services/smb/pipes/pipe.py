"""IPC$ and its one pipe, ``srvsvc``, on which clients ask for the list of shares.

A client writes a packet of DCE/RPC and reads the answer, or does both with one FSCTL_PIPE_TRANSCEIVE. A pipe has
messages: a read returns one packet, or the part of it that fits.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from kyanite.services.smb.connections.part_request import PartRequest
from kyanite.services.smb.pipes import share_calls
from kyanite.services.smb.request import Answer, Failed
from kyanite.services.smb.sessions.validation import validate_negotiate
from kyanite.services.smb.state import Open
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import body, ioctl, read_write, rpc, session, srvsvc
from kyanite.wire.smb2 import close as closing
from kyanite.wire.smb2 import create as creation
from kyanite.wire.smb2.body import FileId
from kyanite.wire.smb2.create import CreateAction, CreateResponse
from kyanite.wire.smb2.filetime import NO_TIMES
from kyanite.wire.smb2.fsctl import Fsctl
from kyanite.wire.smb2.info import messages
from kyanite.wire.smb2.info.messages import InfoType
from kyanite.wire.smb2.ioctl import IS_FSCTL, IoctlRequest
from kyanite.wire.smb2.rpc import Bind
from kyanite.wire.smb2.status import Status

PIPES_MAX = 64
"""Of one tree."""

_ATTRIBUTE_NORMAL = 0x80
_ALLOCATION_BYTES = 4096
_PACKET_BYTES_MAX = 16 * 1024
_ANSWERS_MAX = 64
"""Packets that wait to be read. A client that writes more has to read first."""
_STANDARD = 5
_STANDARD_INFORMATION = _ALLOCATION_BYTES.to_bytes(8, "little") + bytes(8) + b"\1\0\0\0" + b"\1" + bytes(3)


@dataclass(eq=False, slots=True)
class Pipe(Open):
    group_id: int = 0
    bound: Bind | None = None
    answers: deque[bytes] = field(default_factory=deque)
    readers: deque[asyncio.Future[None]] = field(default_factory=deque)


def _pipe(request: PartRequest) -> Pipe:
    opened = request.open
    assert isinstance(opened, Pipe), "A tree of IPC$ has pipes only."
    return opened


async def create(request: PartRequest) -> Answer:
    call = creation.decode(request.message)
    if call.name.removeprefix("\\").lower() != srvsvc.PIPE:
        raise Failed(Status.OBJECT_NAME_NOT_FOUND)
    tree = request.tree
    if len(tree.opens) >= PIPES_MAX:
        raise Failed(Status.INSUFFICIENT_RESOURCES)
    number = int.from_bytes(request.environment.random_bytes(7), "little") + 1
    pipe = Pipe(tree, FileId(number, number), 0, call.desired_access, call.options, is_directory=False)
    pipe.group_id = number & 0x7FFFFFFF or 1
    request.opened(pipe)
    return Answer(
        creation.encode(
            CreateResponse(0, CreateAction.OPENED, NO_TIMES, _ALLOCATION_BYTES, 0, _ATTRIBUTE_NORMAL, pipe.id)
        )
    )


async def close(request: PartRequest) -> Answer:
    closing.decode_close(request.message)
    request.tree.opens.pop(request.open.id.volatile, None)
    return Answer(closing.encode_close())


async def flush(request: PartRequest) -> Answer:
    closing.decode_flush(request.message)
    return Answer(session.EMPTY)


async def read(request: PartRequest) -> Answer:
    call = read_write.decode_read(request.message)
    pipe = _pipe(request)
    while not pipe.answers:
        readable = asyncio.get_running_loop().create_future()
        pipe.readers.append(readable)
        await request.wait(readable, at_close=Status.FILE_CLOSED)
    data, is_cut = _next(pipe, call.length)
    status = Status.BUFFER_OVERFLOW if is_cut else Status.SUCCESS
    return Answer([read_write.encode_read(len(data)), data], status)


def _next(pipe: Pipe, length: int) -> tuple[bytes, bool]:
    """As much as fits of the next packet, and whether more of it is left."""
    packet = pipe.answers.popleft()
    if len(packet) <= length:
        return packet, False
    pipe.answers.appendleft(packet[length:])
    return packet[:length], True


async def write(request: PartRequest) -> Answer:
    call = read_write.decode_write(request.message)
    await _call(request, call.data)
    return Answer(read_write.encode_write(len(call.data)))


async def _call(request: PartRequest, packet: memoryview) -> None:
    """Answer a packet: a bind, or a call of an operation."""
    pipe = _pipe(request)
    if len(packet) > _PACKET_BYTES_MAX or len(pipe.answers) >= _ANSWERS_MAX:
        raise Failed(Status.INSUFFICIENT_RESOURCES)
    try:
        decoded = rpc.decode(packet)
    except Malformed:
        raise Failed(Status.INVALID_PARAMETER) from None
    if isinstance(decoded, Bind):
        pipe.bound = decoded
        pipe.answers.append(
            rpc.encode_bind_ack(decoded, interface=srvsvc.INTERFACE, pipe=srvsvc.PIPE, group_id=pipe.group_id)
        )
    else:
        pipe.answers.extend(await share_calls.answer(request.session.account, pipe.bound, decoded))
    while pipe.readers:
        readable = pipe.readers.popleft()
        if not readable.done():
            readable.set_result(None)


async def ioctl_on_pipe(request: PartRequest) -> Answer:
    call = ioctl.decode(request.message)
    if call.flags != IS_FSCTL:
        raise Failed(Status.NOT_SUPPORTED)
    if call.code == Fsctl.VALIDATE_NEGOTIATE_INFO:
        return validate_negotiate(request, call)
    if call.code in (Fsctl.DFS_GET_REFERRALS, Fsctl.DFS_GET_REFERRALS_EX):
        raise Failed(Status.NOT_FOUND)
    if call.code == Fsctl.PIPE_TRANSCEIVE:
        return await _transceive(request, call)
    if call.code == Fsctl.PIPE_WAIT:
        raise Failed(Status.NOT_SUPPORTED)
    if call.code == Fsctl.PIPE_PEEK:
        raise Failed(Status.INVALID_DEVICE_REQUEST)
    raise Failed(Status.FS_DRIVER_REQUIRED)


async def _transceive(request: PartRequest, call: IoctlRequest) -> Answer:
    pipe = _pipe(request)
    await _call(request, call.input)
    data, is_cut = _next(pipe, call.max_output_bytes)
    status = Status.BUFFER_OVERFLOW if is_cut else Status.SUCCESS
    return Answer(ioctl.encode(call.code, pipe.id, data), status)


async def query_info(request: PartRequest) -> Answer:
    call = messages.decode_query(request.message)
    if call.info_type != InfoType.FILE or call.information_class != _STANDARD:
        raise Failed(Status.INVALID_DEVICE_REQUEST)
    data, _ = messages.fit(_STANDARD_INFORMATION, len(_STANDARD_INFORMATION), call.output_bytes)
    return Answer(body.encode_output(data))
