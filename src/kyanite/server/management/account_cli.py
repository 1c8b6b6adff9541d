"""``kyanite account …``: the accounts of a running server."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from kyanite.server.failures import BadUsage
from kyanite.server.management import account_output
from kyanite.server.management.output import show
from kyanite.server.options import location_option
from kyanite.server.terminal import completing
from kyanite.server.terminal.help_sections import examples

_Command = TypeVar("_Command", bound=Callable[..., object])

_SWITCHES = (
    ("shared_key_access", "Whether account keys, and signatures made with them, open the account."),
    ("public_access", "Whether containers may be public."),
    ("require_https", "Whether requests over plain HTTP are refused."),
    ("last_access_tracking", "Whether the time of the last access to a blob is kept."),
    ("version_level_immutability", "Whether new containers have it; needs versioning."),
    ("read_only", "Whether clients may only read."),
    ("versioning", "Whether previous versions of blobs are kept."),
    ("allow_permanent_delete", "Whether soft-deleted blobs may be deleted for good."),
)
_OTHERS: tuple[tuple[str, Any, str, str], ...] = (
    ("blob_soft_delete_days", int, "DAYS", "How long deleted blobs are kept; 0 for not at all."),
    ("container_soft_delete_days", int, "DAYS", "How long deleted containers are kept; 0 for not at all."),
    (
        "sas_policy",
        str,
        "POLICY",
        "'log 1.00:00:00' or 'block 1.00:00:00' (days.hours:minutes:seconds), or none.",
    ),
    ("kind", str, "KIND", "Only StorageV2 is there."),
    ("sku", str, "SKU", "Standard_LRS, _ZRS, _GRS, _RAGRS, _GZRS or _RAGZRS."),
)
_KEY_FILE_BYTES_MAX = 4096


def _settings_options(command: _Command) -> _Command:
    """An option for each setting; those that are left out stay as they are."""
    for name, kind, metavar, text in reversed(_OTHERS):
        command = click.option(f"--{name.replace('_', '-')}", name, type=kind, metavar=metavar, help=text)(
            command
        )
    for name, text in reversed(_SWITCHES):
        switch = click.Choice(("on", "off"))
        command = click.option(f"--{name.replace('_', '-')}", name, type=switch, help=text)(command)
    return command


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    switches = {name for name, _ in _SWITCHES}
    given = {name: value for name, value in options.items() if value is not None}
    return {name: value == "on" if name in switches else value for name, value in given.items()}


_name = click.argument("name", shell_complete=completing.accounts)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_key_files = click.option(
    "--key-file",
    "key_files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="File with a key in base64, - for standard input.  [default: new keys are made and printed]",
)


@click.group(
    help="The accounts of a running server, which is found by --location (KYANITE_LOCATION); one with --in-memory "
    "prints its own.",
    epilog=examples(
        "kyanite account add mystore                         add an account, and print its keys",
        "kyanite account set mystore --versioning on --blob-soft-delete-days 14",
        "kyanite account rotate-key mystore 1",
        "kyanite account keys mystore",
        "kyanite account list",
    ),
)
def account() -> None:
    pass


@account.command("list", help="List the accounts and their settings, without keys.")
@location_option
@_as_json
def list_accounts(location: Path, as_json: bool) -> None:
    _show(_call(location, "account list"), account_output.account_lines, as_json=as_json)


@account.command("add", help="Add an account, and print its keys.")
@_name
@location_option
@_key_files
@click.option("--stamp", default="main", show_default=True, help="The stamp on which the account is to live.")
@_as_json
@_settings_options
def add(
    name: str, location: Path, key_files: tuple[Path, ...], stamp: str, as_json: bool, **options: Any
) -> None:
    keys = [_read_key(path) for path in key_files]
    settings = _settings(options)
    added = _call(location, "account add", name=name, keys=keys, settings=settings, stamp=stamp)
    _show(added, account_output.key_lines, as_json=as_json)


@account.command("set", help="Change settings of an account.")
@_name
@location_option
@_as_json
@_settings_options
def set_settings(name: str, location: Path, as_json: bool, **options: Any) -> None:
    changed = _call(location, "account set", name=name, settings=_settings(options))
    _show(changed, account_output.setting_lines, as_json=as_json)


@account.command("rotate-key", help="Replace a key of an account, and print both.")
@_name
@click.argument("number", type=click.IntRange(1, 2))
@location_option
@_key_files
@_as_json
def rotate_key(name: str, number: int, location: Path, key_files: tuple[Path, ...], as_json: bool) -> None:
    if len(key_files) > 1:
        raise BadUsage("One key is replaced at a time.")
    key = _read_key(key_files[0]) if key_files else None
    rotated = _call(location, "account rotate-key", name=name, number=number, key=key)
    _show(rotated, account_output.key_lines, as_json=as_json)


@account.command("keys", help="Print the keys of an account.")
@_name
@location_option
@_as_json
def keys(name: str, location: Path, as_json: bool) -> None:
    _show(_call(location, "account keys", name=name), account_output.key_lines, as_json=as_json)


@account.command("remove", help="Remove an account.")
@_name
@location_option
@click.option("--with-data", is_flag=True, help="Also if it has data, which is deleted for good.")
@_as_json
def remove(name: str, location: Path, with_data: bool, as_json: bool) -> None:
    show(_call(location, "account remove", name=name, with_data=with_data), as_json=as_json)


def _show(result: Any, lines: Callable[[Any], Iterable[str]], *, as_json: bool) -> None:
    if as_json:
        show(result, as_json=True)
        return
    for line in lines(result):
        click.echo(line)


def _call(location: Path, command: str, **arguments: object) -> Any:
    from kyanite.server.management.client import call

    return call(location, command, **arguments)


def _read_key(path: Path) -> str:
    """A key is a secret: it is read from a file, and not from the command line, which other users can list."""
    with click.open_file(str(path), "rb") as file:
        text: bytes = file.read(_KEY_FILE_BYTES_MAX)
    return text.decode("latin-1").strip()
