from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kyanite.server.failures import Failure
from kyanite.server.management import unix_socket


@pytest.mark.parametrize("length", [1, 200])
def test_the_path_of_the_folder_may_be_long(tmp_path: Path, length: int) -> None:
    folder = tmp_path / ("f" * length)
    folder.mkdir()
    with unix_socket.open_socket(folder) as listener:
        assert (folder / unix_socket.NAME).stat().st_mode & 0o777 == 0o600
        unix_socket.connect(folder).close()
        listener.accept()[0].close()
    unix_socket.remove_socket(folder)
    with pytest.raises(Failure):
        unix_socket.connect(folder)


def test_threads_that_connect_leave_the_present_folder_as_it_is(tmp_path: Path) -> None:
    before = Path.cwd()
    folders = [tmp_path / (letter * 150) for letter in "ab"]
    for folder in folders:
        folder.mkdir()
    listeners = [unix_socket.open_socket(folder) for folder in folders]
    try:
        with ThreadPoolExecutor(4) as threads:
            for number in range(16):  # No more than wait to be accepted.
                threads.submit(_try_to_connect, folders[number % 2])
    finally:
        for listener in listeners:
            listener.close()
    assert Path.cwd() == before


def _try_to_connect(folder: Path) -> None:
    unix_socket.connect(folder).close()
