"""A share and another way to its files: REST for this server's, the folder for smbd's.

Tests that need no REST run against smbd too: ``SMB_ORACLE=1 pytest tests/smb`` shows that they demand nothing that smbd
does not do.
"""

from abc import ABC, abstractmethod

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.fileshare import ShareClient

from tests.server_process import ServerProcess
from tests.smb.programs import Login
from tests.smb.smbd import Smbd
from tests.smb.torture.targets import login_of


class Share(ABC):
    """An empty share of a running server."""

    name: str
    login: Login

    @abstractmethod
    def content(self, path: str) -> bytes:
        """All bytes of a file. The parts of the path are separated by slashes."""

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Make a file in a directory that is there."""

    @abstractmethod
    def make_directory(self, path: str) -> None: ...

    @abstractmethod
    def names(self, path: str = "") -> list[str]:
        """The names in a directory, sorted."""

    @abstractmethod
    def has_file(self, path: str) -> bool: ...


class KyaniteShare(Share):
    def __init__(self, server: ServerProcess, name: str) -> None:
        self.name = name
        self.login = login_of(server)
        self.rest = ShareClient(server.endpoints["file"], name, credential=server.account_key, retry_total=0)
        self.rest.create_share()

    def content(self, path: str) -> bytes:
        data: bytes = self.rest.get_file_client(path).download_file().readall()
        return data

    def put(self, path: str, data: bytes) -> None:
        self.rest.get_file_client(path).upload_file(data)

    def make_directory(self, path: str) -> None:
        self.rest.create_directory(path)

    def names(self, path: str = "") -> list[str]:
        return sorted(entry.name for entry in self.rest.list_directories_and_files(path or None))

    def has_file(self, path: str) -> bool:
        try:
            self.rest.get_file_client(path).get_file_properties()
        except ResourceNotFoundError:
            return False
        return True


class SmbdShare(Share):
    def __init__(self, smbd: Smbd, name: str) -> None:
        self.name = name
        self.login = smbd.login
        self._folder = smbd.share_folder(name)
        smbd.empty(name)

    def content(self, path: str) -> bytes:
        return (self._folder / path).read_bytes()

    def put(self, path: str, data: bytes) -> None:
        (self._folder / path).write_bytes(data)
        (self._folder / path).chmod(0o755)

    def make_directory(self, path: str) -> None:
        (self._folder / path).mkdir()

    def names(self, path: str = "") -> list[str]:
        return sorted(entry.name for entry in (self._folder / path).iterdir())

    def has_file(self, path: str) -> bool:
        return (self._folder / path).is_file()
