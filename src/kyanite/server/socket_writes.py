"""Writes to many sockets by one call of the kernel: Linux's ``io_submit``.

A write to a socket that does not block is complete, or refused, before ``io_submit`` returns. So nothing is ever under
way here, and the bytes are needed no longer.

It saves more than calls. A write wakes the client, which may get the processor as soon as the call ends: with a call
for each of sixteen responses, clients on the same machine took it from the server eight times meanwhile.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

WRITES_MAX: Final = 32
"""How many writes fit into one call."""
FAILED: Final = -1

_NUMBERS: Final = {"x86_64": (206, 209, 208, 207), "aarch64": (0, 2, 4, 1)}
"""Of the calls ``io_setup``, ``io_submit``, ``io_getevents`` and ``io_destroy``."""

_CONTROL: Final = struct.Struct("<QIIHhIQQqQII")
"""``struct iocb``: data, key, flags, operation, priority, descriptor, address, length, offset, and three more."""
_PWRITE: Final = 1
_TARGET: Final = struct.Struct("<IQQ")
"""Descriptor, address and length: all that differs from one use of a control block to the next."""
_TARGET_OFFSET: Final = 20
_EVENT: Final = struct.Struct("<QQqq")
"""``struct io_event``: data, address of the control block, result, a second result."""

_BYTES_OFFSET: Final = bytes.__basicsize__ - 1
"""Where the content of a ``bytes`` object begins in it: behind all else but the zero at its end."""


class SocketWrites:
    """Belongs to one process, which makes it after the fork."""

    def __init__(self, machine: str) -> None:
        """``machine`` is the kind of processor. Raises ``OSError`` where the kernel does not offer these calls."""
        if sys.platform != "linux" or machine not in _NUMBERS:
            raise OSError("This system has no such calls.")
        sample = b"a sample"
        if ctypes.string_at(id(sample) + _BYTES_OFFSET, len(sample)) != sample:
            raise OSError("This interpreter keeps bytes in another way.")
        setup, submit, get_events, destroy = _NUMBERS[machine]
        context = ctypes.c_ulong(0)
        if _kernel_call(ctypes.c_long, ctypes.c_void_p)(setup, WRITES_MAX, ctypes.byref(context)) != 0:
            raise OSError("The kernel refuses such calls.")
        self._context = context.value
        self._destroy = destroy
        self._submit = submit
        self._get_events = get_events
        self._submitting = _kernel_call(ctypes.c_ulong, ctypes.c_long, ctypes.c_void_p)
        self._getting = _kernel_call(
            ctypes.c_ulong, ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p
        )
        self._controls = bytearray(WRITES_MAX * _CONTROL.size)
        self._events = bytearray(WRITES_MAX * _EVENT.size)
        self._events_address = _address_of(self._events)
        controls_address = _address_of(self._controls)
        addresses = []
        for index in range(WRITES_MAX):
            offset = index * _CONTROL.size
            _CONTROL.pack_into(self._controls, offset, index, 0, 0, _PWRITE, 0, 0, 0, 0, 0, 0, 0, 0)
            addresses.append(controls_address + offset)
        self._pointers = bytearray(struct.pack(f"<{WRITES_MAX}Q", *addresses))
        self._pointers_address = _address_of(self._pointers)

    def close(self) -> None:
        """From now on every write fails."""
        _kernel_call(ctypes.c_ulong)(self._destroy, self._context)

    def write(self, descriptors: Sequence[int], pieces: Sequence[bytes]) -> list[int]:
        """How many bytes of each piece were written to the descriptor at the same place, or ``FAILED``."""
        if len(pieces) == 1:
            return [_write(descriptors[0], pieces[0])]
        controls, offset = self._controls, _TARGET_OFFSET
        for index, data in enumerate(pieces):
            _TARGET.pack_into(controls, offset, descriptors[index], id(data) + _BYTES_OFFSET, len(data))
            offset += _CONTROL.size
        written = [FAILED] * len(pieces)
        count = self._submitting(self._submit, self._context, len(pieces), self._pointers_address)
        if count > 0:
            got = self._getting(self._get_events, self._context, count, count, self._events_address, None)
            for number in range(got):
                index, _, result, _ = _EVENT.unpack_from(self._events, number * _EVENT.size)
                written[index] = max(result, FAILED)
        return written


def _write(descriptor: int, data: bytes) -> int:
    try:
        return os.write(descriptor, data)
    except OSError:
        return FAILED


def _kernel_call(*arguments: Any) -> Callable[..., int]:
    """A way to call the kernel by number, with arguments of these types behind it.

    The interpreter stays locked: the call takes microseconds, and to get the lock back may take milliseconds.
    """
    function = ctypes.PyDLL(None)["syscall"]
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_long, *arguments]
    return function


def _address_of(memory: Any) -> int:
    """Where it begins. It does not move, and cannot be made larger or smaller, as long as it exists."""
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
