"""What is done with a directory costs the same whatever it holds."""

import pytest

from kyanite.model.files import directory, file, listing, share, share_snapshots
from kyanite.model.files.entry import DIRECTORY, Entry
from kyanite.model.files.file import NewFile
from kyanite.model.files.listing import DirectoryListing, list_directory
from kyanite.model.files.properties import SmbProperties
from kyanite.model.files.rename import Rename, rename
from kyanite.model.files.share import ShareKey, ShareSettings
from kyanite.model.files.tree import FilePath
from kyanite.model.records import HttpHeaders
from tests.model.content.world import outcome
from tests.model.counted import CountingEngine

SHARE = ShareKey("acme", "share")
SMALL, LARGE = 40, 2000
PAGE = 20
NEW_FILE = NewFile(0, HttpHeaders(), {}, SmbProperties())


def path(*names: str) -> FilePath:
    return FilePath(SHARE, names)


def filled(entries: int) -> CountingEngine:
    engine = CountingEngine()
    outcome(share.create(engine, SHARE, {}, ShareSettings(), directory.create_root))
    outcome(directory.create(engine, path("d"), SmbProperties(), {}))
    for number in range(entries):
        outcome(file.create(engine, path("d", f"{number:05}"), NEW_FILE, None, may_overwrite=False))
    engine.costs.clear()
    return engine


def costs(entries: int, *, keeps_snapshot: bool) -> dict[str, int]:
    engine = filled(entries)
    key = SHARE
    if keeps_snapshot:
        instant, _ = outcome(share_snapshots.take(engine, SHARE, {}))
        key = ShareKey("acme", "share", instant)
    steps = {
        "first page": list_directory(engine, FilePath(key, ("d",)), DirectoryListing(limit=PAGE)),
        "last page": list_directory(
            engine, FilePath(key, ("d",)), DirectoryListing(first=f"{entries - PAGE:05}", limit=PAGE)
        ),
    }
    for step in steps.values():
        outcome(step)
    outcome(rename(engine, path("d"), DIRECTORY, Rename(("e",))))
    outcome(file.delete(engine, path("e", "00007"), None))
    outcome(share_snapshots.take(engine, SHARE, {}))
    names = (["snapshot"] if keeps_snapshot else []) + [*steps, "rename", "delete", "another snapshot"]
    return dict(zip(names, engine.costs, strict=True))


@pytest.mark.parametrize("keeps_snapshot", [False, True])
def test_size_does_not_matter(keeps_snapshot: bool) -> None:
    small, large = (costs(entries, keeps_snapshot=keeps_snapshot) for entries in (SMALL, LARGE))
    assert small == large
    assert small["first page"] <= 3 * PAGE
    assert small["rename"] < 20


def test_a_page_of_a_snapshot_ends_early_rather_than_read_very_many_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every entry appears once, also when pages end among the preserved rows of one name."""
    engine = filled(6)
    snapshots = []
    for number in range(4):
        instant, _ = outcome(share_snapshots.take(engine, SHARE, {}))
        snapshots.append(FilePath(ShareKey("acme", "share", instant), ("d",)))
        for name in ("00001", "00003", f"0000{number}"):
            outcome(file.set_metadata(engine, path("d", name), {"n": str(number)}, None))
        outcome(file.delete(engine, path("d", "00005"), None))
        outcome(file.create(engine, path("d", "00005"), NEW_FILE, None, may_overwrite=False))
    whole = [outcome(list_directory(engine, snapshot, DirectoryListing())).entries for snapshot in snapshots]
    for rows_max in (1, 2, 3, 5):
        monkeypatch.setattr(listing, "_ROWS_MAX", rows_max)
        for snapshot, expected in zip(snapshots, whole, strict=True):
            found: list[Entry] = []
            first: str | None = ""
            while first is not None:
                engine.costs.clear()
                page = outcome(list_directory(engine, snapshot, DirectoryListing(first=first, limit=4)))
                assert engine.costs[0] <= 12 + rows_max + 4
                found += page.entries
                first = page.next_name
            assert found == expected
