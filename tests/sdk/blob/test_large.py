"""Large bodies in constant memory."""

import hashlib
import random
from pathlib import Path

from tests.sdk.clients import Sdk, done
from tests.server_process import ServerProcess

MIB = 1024 * 1024
SIZE_MIB = 300
GROWTH_MAX_MIB = 100
"""What the workers together may grow by: far less than the body, far more than the buffers of one upload."""


def _peak_mib(server: ServerProcess) -> float:
    """The most memory that the workers have used since the mark was reset."""
    total = 0
    for pid in server.worker_pids():
        status = Path(f"/proc/{pid}/status").read_text()
        total += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return total / 1024


def _reset_peak(server: ServerProcess) -> None:
    for pid in server.worker_pids():
        Path(f"/proc/{pid}/clear_refs").write_text("5")


class _Source:
    """A stream that makes up its bytes as they are asked for."""

    def __init__(self) -> None:
        self._piece = random.Random(3).randbytes(MIB)
        self.digest = hashlib.md5()

    def read(self, size: int) -> bytes:
        pieces = [number.to_bytes(8, "big") + self._piece[8:] for number in range(size // MIB)]
        for piece in pieces:
            self.digest.update(piece)
        return b"".join(pieces)


class _Sink:
    """A stream that only remembers the hash of what it was given."""

    def __init__(self) -> None:
        self.digest = hashlib.md5()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return len(data)


async def test_a_large_blob_passes_through_without_filling_the_memory(sdk: Sdk) -> None:
    container = await sdk.new_container()
    service = sdk.service(max_single_put_size=1024 * MIB, max_single_get_size=1024 * MIB)
    blob = service.get_blob_client(container.container_name, "large")
    source = _Source()
    _reset_peak(sdk.server)
    before = _peak_mib(sdk.server)
    requests: list[str] = []
    uploaded = await done(
        blob.upload_blob(
            source,
            length=SIZE_MIB * MIB,
            raw_response_hook=lambda response: requests.append(response.http_request.method),
        )
    )
    assert requests == ["PUT"]
    assert uploaded["content_md5"] == source.digest.digest()

    received = _Sink()
    stream = await done(blob.download_blob())
    assert await done(stream.readinto(received)) == SIZE_MIB * MIB
    assert received.digest.digest() == source.digest.digest()
    growth = _peak_mib(sdk.server) - before
    print(f"the workers grew by {growth:.0f} MiB for {SIZE_MIB} MiB in and out")
    assert growth < GROWTH_MAX_MIB
    await done(blob.delete_blob())
