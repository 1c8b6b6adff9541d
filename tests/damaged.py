"""Damage on the disk of a store: one byte that is not what was written."""

from pathlib import Path


def flip(store: Path, stored: bytes) -> None:
    """Change the first of these bytes, wherever in the bulk bytes of the store they are. They must be there once."""
    found = [
        (path, at)
        for path in store.rglob("segments/*/*")
        if (at := path.read_bytes().find(stored)) >= 0 and path.is_file()
    ]
    ((path, at),) = found
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([stored[0] ^ 0xFF]))


def segment_files(store: Path) -> list[Path]:
    return [path for path in store.rglob("segments/*/*") if path.is_file()]
