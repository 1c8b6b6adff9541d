"""An SMB client is told what others change in a directory, through either protocol and any worker."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from azure.storage.fileshare import ShareClient
from smbprotocol.change_notify import ChangeNotifyFlags, CompletionFilter, FileSystemWatcher
from smbprotocol.open import Open

from tests.smb.messages import (
    CREATE,
    DIRECTORY,
    FILE,
    GENERIC_ALL,
    GENERIC_READ,
    Client,
    connected,
    refused,
    rename_to,
)
from tests.smb.shares import KyaniteShare

ADDED, REMOVED, MODIFIED, OLD_NAME, NEW_NAME = range(1, 6)
NAMES = CompletionFilter.FILE_NOTIFY_CHANGE_FILE_NAME | CompletionFilter.FILE_NOTIFY_CHANGE_DIR_NAME
LAST_WRITE = CompletionFilter.FILE_NOTIFY_CHANGE_LAST_WRITE
RENAME = 10
NOTIFY_CLEANUP = 0x10B


@pytest.fixture
def rest(share: KyaniteShare) -> ShareClient:
    return share.rest


@pytest.fixture
def client(share: KyaniteShare) -> Iterator[Client]:
    with connected(share.login, share.name) as made:
        yield made


class Watch:
    """The root of the share and all below it."""

    def __init__(self, client: Client, kinds: int = NAMES) -> None:
        self.opened: Open = client.create("", access=GENERIC_READ, options=DIRECTORY)
        self._kinds = kinds
        self._watcher = self._start()
        while (
            self._watcher._request.async_id is None
        ):  # What happens before the server has begun is not reported.
            time.sleep(0.001)

    def _start(self) -> FileSystemWatcher:
        watcher = FileSystemWatcher(self.opened)
        watcher.start(self._kinds, flags=ChangeNotifyFlags.SMB2_WATCH_TREE)
        return watcher

    def next(self) -> list[tuple[int, str]]:
        """What has happened, once something has."""
        found = self._watcher.wait()
        self._watcher = self._start()
        return [(each["action"].get_value(), each["file_name"].get_value()) for each in found]

    def collect(self, count: int) -> list[tuple[int, str]]:
        """So many changes: how many come at a time depends on when they are noticed."""
        found: list[tuple[int, str]] = []
        while len(found) < count:
            found += self.next()
        return found


def test_changes_over_rest_are_reported(client: Client, rest: ShareClient) -> None:
    watch = Watch(client, NAMES | LAST_WRITE)
    directory = rest.create_directory("d")
    assert watch.next() == [(ADDED, "d")]
    file = directory.get_file_client("x")
    file.create_file(10)
    assert watch.next() == [(ADDED, "d\\x")]
    file.upload_range(b"text", 0, 4)
    assert watch.next() == [(MODIFIED, "d\\x")]
    renamed = file.rename_file("d/y")
    assert watch.next() == [(OLD_NAME, "d\\x"), (NEW_NAME, "d\\y")]
    renamed.delete_file()
    rest.delete_directory("d")
    assert watch.collect(2) == [(REMOVED, "d\\y"), (REMOVED, "d")]


def test_changes_of_other_clients_are_reported(share: KyaniteShare, client: Client) -> None:
    watch = Watch(client)
    with connected(share.login, share.name) as other:
        opened = other.create("x", access=GENERIC_ALL, disposition=CREATE)
        assert watch.next() == [(ADDED, "x")]
        other.change(opened, FILE, RENAME, rename_to("y"))
        assert watch.next() == [(OLD_NAME, "x"), (NEW_NAME, "y")]
        other.change(opened, FILE, 13, b"\1")
        other.close(opened)
        assert watch.next() == [(REMOVED, "y")]


def test_every_watch_of_a_share_gets_the_changes(share: KyaniteShare, rest: ShareClient) -> None:
    """With several connections, each worker serves some of them."""
    with ExitStack() as stack:
        watches = [Watch(stack.enter_context(connected(share.login, share.name))) for _ in range(4)]
        rest.create_directory("d")
        assert [each.next() for each in watches] == [[(ADDED, "d")]] * 4


def test_force_close_ends_a_watch(client: Client, rest: ShareClient) -> None:
    watch = Watch(client)
    assert rest.get_directory_client().close_all_handles()["closed_handles_count"] == 1
    with refused(NOTIFY_CLEANUP):
        watch.next()
