"""The configuration file of ``kyanite serve --config FILE``: TOML, checked as a whole before anything is opened.

    [server]                              # the options of kyanite serve, with underscores: blob_port = 10000
    [accounts.NAME]                       # keys or key_files, and settings (``accounts/settings.py``)
    [identity]                            # whose bearer tokens are accepted (``identity/config.py``)
    [stamps.NAME]                         # engine and extents of a stamp. The one called main, or else the first,
                                          # is the store of the options; accounts.NAME.stamp may name another

Whatever is unknown, of the wrong type or contradictory is one ``BadUsage`` with the path of its key. Paths are relative
to the folder of the file. Keys are secrets: no message ever holds one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from kyanite.rules.account_settings import NOT_HONOURED
from kyanite.server.accounts.settings import SETTINGS, SettingsChange, problem_of
from kyanite.server.config import KEYS, StatedAccount, is_account_name, parse_key
from kyanite.server.failures import BadUsage
from kyanite.server.options import NO_PORT, PortOrNone
from kyanite.server.stamps.stamp import MAIN, NAME, Stamp
from kyanite.server.store.api import choose_kind

KEY_FILE_BYTES_MAX = 4096
_SECTIONS = ("server", "accounts", "identity", "stamps")
_STAMP_KEYS = ("engine", "extents")
_LISTS = ("services", "console_names")
"""Options whose values, separated by commas, may be a list."""


class ConfigFile(msgspec.Struct, frozen=True):
    server: Mapping[str, Any]
    """Values of options, by the names that they have in the code."""
    accounts: tuple[StatedAccount, ...]
    identity: Mapping[str, object]
    folder: Path
    """Where files that it names are, unless it says otherwise."""
    stamps: tuple[Stamp, ...] = ()
    """Those besides the main one."""


NO_FILE = ConfigFile({}, (), {}, Path())


def read_config_file(path: Path, options: Sequence[click.Option], context: click.Context) -> ConfigFile:
    """``options`` are those that the table ``[server]`` may have."""
    # Imported here, since most servers have no such file.
    import tomllib

    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise BadUsage(f"Cannot read the file {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadUsage(f"The file {path} is not TOML: {error}.") from None
    return _Reader(path, context).read(document, options)


class _Reader:
    def __init__(self, path: Path, context: click.Context) -> None:
        self._path = path
        self._context = context

    def read(self, document: Mapping[str, Any], options: Sequence[click.Option]) -> ConfigFile:
        for name in document:
            if name not in _SECTIONS:
                raise self._bad(name, f"is not known: there are {', '.join(_SECTIONS)}")
        main, of_main, stamps = self._stamps(self._table(document, "stamps"))
        of_server = self._table(document, "server")
        for key in of_main.keys() & of_server.keys():
            raise self._bad(f"stamps.{main}.{key}", f"is stated as server.{key}, too")
        server = self._server({**of_server, **of_main}, options)
        names = {main: MAIN, **{stamp.name: stamp.name for stamp in stamps}}
        tables = self._table(document, "accounts")
        accounts = tuple(self._account(name, self._table(tables, name, "accounts"), names) for name in tables)
        return ConfigFile(server, accounts, self._table(document, "identity"), self._path.parent, stamps)

    def _bad(self, key: str, what: str) -> BadUsage:
        return BadUsage(f"{key} in {self._path} {what}.")

    def _table(self, within: Mapping[str, Any], name: str, path: str = "") -> Mapping[str, Any]:
        found = within.get(name, {})
        if not isinstance(found, dict):
            raise self._bad(f"{path}.{name}" if path else name, "has to be a table")
        return found

    # [server]

    def _server(self, table: Mapping[str, Any], options: Sequence[click.Option]) -> dict[str, Any]:
        known = {option.name: option for option in options if option.name}
        values = {}
        for name, value in table.items():
            if name not in known:
                raise self._bad(f"server.{name}", "is not known")
            values[name] = self._value(known[name], f"server.{name}", value)
        return values

    def _value(self, option: click.Option, key: str, value: Any) -> Any:
        if option.name in _LISTS and isinstance(value, list) and all(isinstance(each, str) for each in value):
            value = ",".join(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        match option.type:
            case click.types.BoolParamType():
                is_right, wanted = isinstance(value, bool), "true or false"
            case click.types.FloatParamType():
                is_right, wanted = is_number, "a number"
            case PortOrNone():
                is_right = (is_number and isinstance(value, int)) or value == NO_PORT
                wanted = f'a port, or "{NO_PORT}"'
            case click.types.IntParamType():
                is_right, wanted = is_number and isinstance(value, int), "a whole number"
            case _:
                is_right, wanted = isinstance(value, str), "a text"
        if not is_right:
            raise self._bad(key, f"has to be {wanted}")
        if isinstance(option.type, click.Path):
            value = str(self._path.parent / value)
        try:
            option.type.convert(value, option, self._context)
        except click.BadParameter as error:
            raise self._bad(key, f"cannot be used: {error.message.rstrip('.')}") from None
        return value

    # [stamps]

    def _stamps(self, stamps: Mapping[str, Any]) -> tuple[str, Mapping[str, str], tuple[Stamp, ...]]:
        """The name of the main stamp, what is stated about it, and the others."""
        main = MAIN if MAIN in stamps else next(iter(stamps), MAIN)
        tables = {name: self._stamp(name, self._table(stamps, name, "stamps")) for name in stamps}
        others = []
        for name, table in tables.items():
            if name == main:
                continue
            try:
                kind = choose_kind(table.get("engine"), table.get("extents"), in_memory=False)
            except BadUsage as error:
                raise self._bad(f"stamps.{name}", f"cannot be used: {error.sentence.rstrip('.')}") from None
            others.append(Stamp(name, kind))
        return main, tables.get(main, {}), tuple(others)

    def _stamp(self, name: str, table: Mapping[str, Any]) -> Mapping[str, str]:
        if NAME.fullmatch(name) is None:
            raise self._bad(
                f"stamps.{name}", "is no name of a stamp, which has lower-case letters and digits"
            )
        for key, value in table.items():
            if key not in _STAMP_KEYS:
                raise self._bad(f"stamps.{name}.{key}", f"is not known: there are {', '.join(_STAMP_KEYS)}")
            if not isinstance(value, str):
                raise self._bad(f"stamps.{name}.{key}", "has to be a text")
        return table

    # [accounts]

    def _account(self, name: str, table: Mapping[str, Any], stamps: Mapping[str, str]) -> StatedAccount:
        path = f"accounts.{name}"
        if not is_account_name(name):
            raise self._bad(path, "is no name of an account, which has 3 to 24 lower-case letters and digits")
        given = dict(table)
        stamp = given.pop("stamp", MAIN)
        if stamp != MAIN and stamp not in stamps:
            raise self._bad(f"{path}.stamp", "names no store of this server")
        keys = self._keys(path, given.pop("keys", None), given.pop("key_files", None))
        for key, why in NOT_HONOURED.items():
            if given.pop(key, None):
                raise self._bad(f"{path}.{key}", f"cannot be used: {why}")
        settings = self._settings(path, given)
        where = f"the file {self._path}"
        stated = [*([KEYS] if keys else []), *settings.given()]
        return StatedAccount(name, keys, settings, dict.fromkeys(stated, where), stamps.get(stamp, MAIN))

    def _settings(self, path: str, given: Mapping[str, Any]) -> SettingsChange:
        for key in given:
            if key not in SETTINGS:
                raise self._bad(f"{path}.{key}", "is not known")
            try:
                msgspec.convert({key: given[key]}, SettingsChange)
            except msgspec.ValidationError as error:
                raise self._bad(f"{path}.{key}", f"has the wrong type: {_expected(error)}") from None
        change = msgspec.convert(given, SettingsChange)
        if (problem := problem_of(change)) is not None:
            raise self._bad(f"{path}.{problem[0]}", f"cannot be used: {problem[1]}")
        return change

    def _keys(self, path: str, keys: Any, files: Any) -> tuple[bytes, ...]:
        if keys is not None and files is not None:
            raise self._bad(path, "has both keys and key_files")
        key = "keys" if files is None else "key_files"
        texts = keys if files is None else files
        if texts is None:
            return ()
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self._bad(f"{path}.{key}", "has to be a list of texts")
        if not 1 <= len(texts) <= 2:
            raise self._bad(f"{path}.{key}", "has to have one key or two")
        if files is not None:
            texts = [self._read_key(f"{path}.{key}", self._path.parent / text) for text in texts]
        decoded = [parse_key(text) for text in texts]
        if None in decoded:
            raise self._bad(f"{path}.{key}", "has a key that is not base64")
        return tuple(each for each in decoded if each is not None)

    def _read_key(self, key: str, path: Path) -> str:
        try:
            with path.open("rb") as file:
                return file.read(KEY_FILE_BYTES_MAX).decode("latin-1").strip()
        except OSError as error:
            raise self._bad(key, f"names {path}, which cannot be read: {error.strerror}") from None


def _expected(error: msgspec.ValidationError) -> str:
    """What a message of msgspec says was expected, without the value that was found."""
    return str(error).split(" - ")[0].split(", got")[0].replace("`", "").replace("Expected", "expected")
