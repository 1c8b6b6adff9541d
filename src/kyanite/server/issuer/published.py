"""What the issuer of a store leaves in its folder for ``kyanite token``: its name, and whom it knows. No secrets."""

from pathlib import Path

import msgspec

from kyanite.server.failures import Failure
from kyanite.server.issuer import private_files
from kyanite.server.issuer.clients import Identity

_FILE = "issuer.json"


class Published(msgspec.Struct, frozen=True):
    base: str
    """The address of the issuer when the server was last started."""
    tenant: str
    principals: tuple[Identity, ...]


def write(folder: Path, published: Published) -> None:
    private_files.write(folder / _FILE, msgspec.json.format(msgspec.json.encode(published)))


def read(folder: Path) -> Published | None:
    path = folder / _FILE
    text = private_files.read(path)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Published)
    except msgspec.DecodeError:
        raise Failure(f"The file {path} is damaged. The server writes it at its next start.") from None
