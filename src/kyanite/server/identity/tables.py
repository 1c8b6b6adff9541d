"""Tables of the configuration file: what is taken from one is checked, and what is left is unknown."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kyanite.rules.roles import is_guid
from kyanite.server.failures import BadUsage

_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class ConfigTable:
    """A table and its path in the file, which every mistake is reported with."""

    def __init__(self, path: str, table: object, folder: Path = Path()) -> None:
        """``folder`` is that of the configuration file, from which names of other files go on."""
        if not isinstance(table, Mapping):
            raise BadUsage(f"{path} must be a table.")
        self.path = path
        self._folder = folder
        self._left = dict(table)

    def finish(self) -> None:
        for key in self._left:
            raise BadUsage(f"{self.path}.{key} is no known setting.")

    def text(self, key: str) -> str:
        value = self._left.pop(key, "")
        if not isinstance(value, str):
            raise BadUsage(f"{self.path}.{key} must be a text.")
        return value.strip()

    def required(self, key: str) -> str:
        value = self.text(key)
        if not value:
            raise BadUsage(f"{self.path}.{key} is missing.")
        return value

    def guid(self, key: str) -> str:
        value = self.text(key)
        if value and not is_guid(value):
            raise BadUsage(f"{self.path}.{key} must be a GUID.")
        return value.lower()

    def url(self, key: str) -> str:
        value = self.text(key)
        if value and not re.fullmatch(r"https?://[^\s\"',]+", value):
            raise BadUsage(f"{self.path}.{key} must be a URL.")
        if value.startswith("http://") and urlsplit(value).hostname not in _THIS_MACHINE:
            raise BadUsage(f"{self.path}.{key} must begin with https://, except for this machine itself.")
        return value

    def file(self, key: str) -> Path | None:
        value = self.text(key)
        return self._folder / value if value else None

    def number(self, key: str, default: int) -> int:
        value = self._left.pop(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadUsage(f"{self.path}.{key} must be a whole number.")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._left.pop(key, [])
        if not isinstance(value, list) or not all(isinstance(each, str) and each.strip() for each in value):
            raise BadUsage(f"{self.path}.{key} must be a list of texts.")
        return tuple(each.strip() for each in value)

    def tables(self, key: str) -> list["ConfigTable"]:
        value = self._left.pop(key, [])
        if not isinstance(value, list):
            raise BadUsage(f"{self.path}.{key} must be a list of tables.")
        return [
            ConfigTable(f"{self.path}.{key}[{number}]", each, self._folder)
            for number, each in enumerate(value, 1)
        ]

    def flag(self, key: str) -> bool:
        value = self._left.pop(key, False)
        if not isinstance(value, bool):
            raise BadUsage(f"{self.path}.{key} must be true or false.")
        return value

    def guids(self, key: str) -> tuple[str, ...]:
        values = self.texts(key)
        for value in values:
            if not is_guid(value):
                raise BadUsage(f"{self.path}.{key} must be GUIDs.")
        return tuple(value.lower() for value in values)
