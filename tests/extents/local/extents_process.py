"""A process of its own that has a store open: it does what its standard input says and answers line by line.

pin                      pin; answers nothing more than ok
release                  release the oldest pin
put LENGTH               put a body and commit it; answers the extent
leave LENGTH             put a body and do not commit it
begin LENGTH             upload so many bytes of a larger body and never finish
close                    close the store and end
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from kyanite.extents.api import Extent
from kyanite.extents.local.store import LocalExtents
from kyanite.membership.local import LocalMembership

PIECE = 100_000


async def serve(folder: Path) -> None:
    membership = LocalMembership(folder / "owners")
    extents = LocalExtents(folder, membership)
    pins = []
    uploads = []
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command, *arguments = line.split()
        answer = "ok"
        match command:
            case "pin":
                pins.append(extents.pin())
            case "release":
                pins.pop(0).release()
            case "put" | "leave":
                stored = await extents.put(bytes(int(arguments[0])))
                if command == "put":
                    extents.commit([stored])
                answer = encode(stored)
            case "begin":
                upload = extents.upload(size_hint=None)
                for _ in range(int(arguments[0]) // PIECE):
                    await upload.write(bytes(PIECE))
                uploads.append(upload)
            case "close":
                await extents.close()
                membership.close()
                print("ok", flush=True)
                return
        print(answer, flush=True)


def encode(extent: Extent) -> str:
    return msgspec.msgpack.encode(extent).hex()


def decode(text: str) -> Extent:
    return msgspec.msgpack.decode(bytes.fromhex(text), type=Extent)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
