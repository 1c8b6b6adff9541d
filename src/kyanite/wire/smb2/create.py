"""CREATE (MS-SMB2 §2.2.13, §2.2.14). Its contexts are in ``create_contexts``."""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from kyanite.wire.smb2 import create_contexts
from kyanite.wire.smb2.body import HEADER_BYTES, FileId, buffer, text, unpack
from kyanite.wire.smb2.create_contexts import CreateContexts, ResponseContext
from kyanite.wire.smb2.filetime import FileTimes


class OplockLevel(IntEnum):
    NONE = 0x00
    II = 0x01
    EXCLUSIVE = 0x08
    BATCH = 0x09
    LEASE = 0xFF


class Disposition(IntEnum):
    SUPERSEDE = 0
    OPEN = 1
    CREATE = 2
    OPEN_IF = 3
    OVERWRITE = 4
    OVERWRITE_IF = 5


class CreateAction(IntEnum):
    SUPERSEDED = 0
    OPENED = 1
    CREATED = 2
    OVERWRITTEN = 3


SHARE_READ = 0x1
SHARE_WRITE = 0x2
SHARE_DELETE = 0x4

DIRECTORY_FILE = 0x00000001
WRITE_THROUGH = 0x00000002
SEQUENTIAL_ONLY = 0x00000004
NO_INTERMEDIATE_BUFFERING = 0x00000008
SYNCHRONOUS_IO_ALERT = 0x00000010
SYNCHRONOUS_IO_NONALERT = 0x00000020
NON_DIRECTORY_FILE = 0x00000040
RANDOM_ACCESS = 0x00000800
DELETE_ON_CLOSE = 0x00001000
OPEN_BY_FILE_ID = 0x00002000
OPEN_FOR_BACKUP_INTENT = 0x00004000
RESERVE_OPFILTER = 0x00100000
OPEN_REPARSE_POINT = 0x00200000

_REQUEST = struct.Struct("<HBBIQQIIIIIHHII")
_REQUEST_SIZE = 57
_NAME_AT = HEADER_BYTES + _REQUEST.size
_RESPONSE = struct.Struct("<HBBIQQQQQQIIQQII")
_RESPONSE_SIZE = 89
_CONTEXTS_AT = HEADER_BYTES + _RESPONSE.size


class CreateRequest(NamedTuple):
    """The numbers are as sent: which of them are allowed is not for the decoder to say."""

    oplock_level: int
    impersonation_level: int
    desired_access: int
    file_attributes: int
    share_access: int
    disposition: int
    options: int
    name: str
    contexts: CreateContexts


class CreateResponse(NamedTuple):
    oplock_level: int
    action: CreateAction
    times: FileTimes
    allocation_size: int
    end_of_file: int
    file_attributes: int
    file_id: FileId


def decode(message: memoryview) -> CreateRequest:
    (
        _,
        _,
        oplock_level,
        impersonation_level,
        _,
        _,
        desired_access,
        file_attributes,
        share_access,
        disposition,
        options,
        name_at,
        name_length,
        contexts_at,
        contexts_length,
    ) = unpack(message, _REQUEST, _REQUEST_SIZE)
    name = text(buffer(message, name_at, name_length, _NAME_AT))
    contexts = create_contexts.decode(buffer(message, contexts_at, contexts_length, _NAME_AT))
    return CreateRequest(
        oplock_level,
        impersonation_level,
        desired_access,
        file_attributes,
        share_access,
        disposition,
        options,
        name,
        contexts,
    )


def encode(response: CreateResponse, contexts: Sequence[ResponseContext] = ()) -> bytes:
    packed = create_contexts.encode(contexts)
    fixed = _RESPONSE.pack(
        _RESPONSE_SIZE,
        response.oplock_level,
        0,
        response.action,
        *response.times,
        response.allocation_size,
        response.end_of_file,
        response.file_attributes,
        0,
        *response.file_id,
        _CONTEXTS_AT if packed else 0,
        len(packed),
    )
    return fixed + packed
