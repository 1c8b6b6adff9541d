"""Buffers for the payloads of READ and WRITE."""

import ctypes
from collections.abc import Callable

_allocate: Callable[[None, int], bytearray] = ctypes.pythonapi.PyByteArray_FromStringAndSize
_allocate.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t)  # type: ignore[attr-defined]
_allocate.restype = ctypes.py_object  # type: ignore[attr-defined]


def new_buffer(length: int) -> bytearray:
    """A buffer that is not cleared, which takes about as long as filling it. The caller fills all of it before
    anything else sees it."""
    return _allocate(None, length)
