"""Files and folders that are still there after a power cut."""

import os
import shutil
from pathlib import Path


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


def write_file(path: Path, content: bytes) -> None:
    """A new file that only its owner may read. The folder is synced by the caller."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def copy_files(source: Path, target: Path) -> None:
    """All files below a folder, durably."""
    make_folder(target)
    for entry in sorted(source.iterdir()):
        if entry.is_dir():
            copy_files(entry, target / entry.name)
        else:
            write_file(target / entry.name, entry.read_bytes())
    sync_folder(target)


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    sync_folder(folder.parent)
