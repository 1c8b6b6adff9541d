"""CRC-64/NVME, Azure Storage's own CRC64, at memory speed."""

import anycrc

_MODEL = anycrc.Model("CRC64-NVME")


def crc64(data: bytes | bytearray | memoryview, before: int = 0) -> int:
    """The CRC of bytes that have the CRC ``before``, followed by the data."""
    crc: int = _MODEL.calc(data, before)
    return crc
