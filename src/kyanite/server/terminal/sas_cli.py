"""``kyanite sas …``: shared access signatures of every kind.

Each command collects the fields of its kind; ``wire/sas_encoding.py`` knows how they are signed.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from kyanite.server.failures import BadUsage
from kyanite.server.options import DecoratedCommand, location_option, option
from kyanite.server.terminal import completing, paths
from kyanite.server.terminal.help_sections import examples
from kyanite.server.terminal.paths import RemotePath
from kyanite.server.terminal.running_server import RunningServer, account_key_option

VERSION = "2026-04-06"
"""The newest whose lines differ. Every kind has it."""

_PERMISSION_HELP = {
    "blob": "racwdxyltmeopi: read, add, create, write, delete, delete version, permanent delete, list, tags, …",
    "file": "rcwdl: read, create, write, delete, list (shares only).",
    "queue": "raup: read, add, update, process.",
    "table": "raud: read (query), add, update, delete.",
}
_OVERRIDES = (
    ("--cache-control", "rscc", "Cache-Control"),
    ("--content-disposition", "rscd", "Content-Disposition"),
    ("--content-encoding", "rsce", "Content-Encoding"),
    ("--content-language", "rscl", "Content-Language"),
    ("--content-type", "rsct", "Content-Type"),
)
_TABLE_KEYS = (
    ("--start-partition", "spk", "The first partition key."),
    ("--start-row", "srk", "The first row key, in the first partition."),
    ("--end-partition", "epk", "The last partition key."),
    ("--end-row", "erk", "The last row key, in the last partition."),
)
_DELEGATION = (
    ("--authorized-object-id", "saoid", "The user that the delegator says uses it, already authorized."),
    ("--unauthorized-object-id", "suoid", "The user that the delegator says uses it, to be authorized."),
    ("--correlation-id", "scid", "An id to find its requests by."),
    ("--user-object-id", "sduoid", "The only user that may use it, with a bearer token of their own."),
)


def _decorated(command: DecoratedCommand, *decorators: Callable[[Any], Any]) -> DecoratedCommand:
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def _texts(*rows: tuple[str, str, str]) -> list[Callable[[Any], Any]]:
    return [click.option(name, field, metavar="TEXT", default="", help=text) for name, field, text in rows]


_overrides = _texts(*((name, field, f"{header} of responses.") for name, field, header in _OVERRIDES))
_scope = click.option("--encryption-scope", "ses", metavar="NAME", default="", help="Its encryption scope.")
_policy = click.option(
    "--policy",
    "si",
    metavar="ID",
    default="",
    help="A stored access policy, which has what is left out here.",
)
_moments = (
    click.option("--snapshot", metavar="TIME", default="", help="Only this snapshot of the blob."),
    click.option("--version-id", metavar="TIME", default="", help="Only this version of the blob."),
)


def _permissions(text: str, *, required: bool) -> Callable[[Any], Any]:
    return click.option("--permissions", "sp", metavar="LETTERS", default="", required=required, help=text)


_COMMON = (
    click.option("--start", "st", metavar="WHEN", default="", help="When it begins to work.  [default: at once]"),
    click.option(
        "--expires",
        "se",
        metavar="WHEN",
        default="",
        help="When it ends: 15m, 8h, 7d from now, or 2030-01-31T12:00:00Z.  [default: 1h, or what the policy says]",
    ),
    click.option(
        "--ip", "sip", metavar="ADDRESS[-ADDRESS]", default="", help="Only from this address or these addresses."
    ),
    click.option("--https-only", is_flag=True, help="Refuse plain HTTP."),
    click.option("--sas-version", "sv", metavar="DATE", default=VERSION, show_default=True, help="The version, sv."),
)  # fmt: skip
_WHERE = (
    click.option("--url", "as_url", is_flag=True, help="Print the whole URL, of the running server."),
    click.option(
        "--key-number", type=click.IntRange(1, 2), default=1, show_default=True, help="Which key signs."
    ),
    account_key_option,
    location_option,
)


@click.group(
    help="Make shared access signatures. The keys come from the server that runs on --location (KYANITE_LOCATION; "
    "a server with --in-memory prints its own), or from --account-key.",
    epilog=examples(
        "kyanite sas container devstoreaccount1/photos --permissions rl --expires 7d",
        "kyanite sas blob devstoreaccount1/photos/cat.png --permissions r --url",
        "kyanite sas account devstoreaccount1 --services bf --permissions rl",
        "kyanite sas table devstoreaccount1/people --permissions r --start-partition A --end-partition M",
        "KYANITE_TOKEN=$(kyanite token) kyanite sas user-delegation blob://devstoreaccount1/photos --permissions r",
    ),
)
def sas() -> None:
    pass


@sas.command("account", help="For services and resource types of ACCOUNT.")
@click.argument("account", shell_complete=completing.accounts)
@click.option(
    "--services",
    "ss",
    metavar="LETTERS",
    default="bqtf",
    show_default=True,
    help="Of blob, queue, table, file.",
)
@click.option(
    "--types",
    "srt",
    metavar="LETTERS",
    default="sco",
    show_default=True,
    help="Of service, container, object.",
)
@_permissions("rwdxyltacupfi: read, write, delete, list, add, create, update, process, …", required=True)
@_scope
def account_sas(account: str, **options: Any) -> None:
    _print_token(RemotePath("blob", account), options)


def _resource_command(name: str, service: str, path: str, help: str, *more: Callable[[Any], Any]) -> None:
    """One command for each kind of resource."""

    def command(resource: str, **options: Any) -> None:
        target = paths.parse_remote(resource, service, default=service)
        _check_kind(target, name, path)
        _print_token(target, options)

    decorated = _decorated(
        command,
        click.argument("resource", metavar=path),
        _permissions(_PERMISSION_HELP[service], required=False),
        _policy,
        *more,
        *_COMMON,
        *_WHERE,
    )
    sas.command(name, help=help)(decorated)


def _check_kind(target: RemotePath, kind: str, path: str) -> None:
    is_whole = kind in ("container", "share", "queue", "table")
    if not target.container or bool(target.name) == is_whole:
        raise BadUsage(f"A {kind} is named {path}, and not {str(target).partition('://')[2]}.")


_blob_options = (*_moments, _scope, *_overrides)
_resource_command("blob", "blob", "ACCOUNT/CONTAINER/BLOB", "For one blob.", *_blob_options)
_resource_command(
    "container", "blob", "ACCOUNT/CONTAINER", "For a container and its blobs.", _scope, *_overrides
)
_resource_command("file", "file", "ACCOUNT/SHARE/PATH", "For one file.", *_overrides)
_resource_command("share", "file", "ACCOUNT/SHARE", "For a share and its files.", *_overrides)
_resource_command("queue", "queue", "ACCOUNT/QUEUE", "For a queue.")
_resource_command(
    "table", "table", "ACCOUNT/TABLE", "For a table, or a range of its keys.", *_texts(*_TABLE_KEYS)
)


@sas.command(
    "service",
    help="For whatever RESOURCE names: blob://ACCOUNT/CONTAINER[/BLOB], file://ACCOUNT/SHARE[/PATH], "
    "queue://ACCOUNT/QUEUE or table://ACCOUNT/TABLE.",
)
@click.argument("resource")
@_permissions("As for the kind of resource.", required=False)
@_policy
def service_sas(resource: str, **options: Any) -> None:
    target = paths.parse_remote(resource)
    _check_service_options(target, options)
    _print_token(target, options)


@sas.command(
    "user-delegation",
    help="Signed with a key that the owner of a bearer token requests, for RESOURCE: blob://ACCOUNT/CONTAINER[/BLOB], "
    "file://ACCOUNT/SHARE[/PATH] or queue://ACCOUNT/QUEUE.",
)
@click.argument("resource")
@option(
    "--token",
    metavar="TOKEN",
    required=True,
    help="The bearer token. Better in the environment: other users can list command lines.",
)
@_permissions("As for the kind of resource.", required=True)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="A header that requests must have; may be repeated.",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the query that requests must have; may be repeated.",
)
@click.option(
    "--user-tenant-id", metavar="ID", default="", help="The tenant of that user, if it is another one."
)
@_scope
def user_delegation(resource: str, **options: Any) -> None:
    target = paths.parse_remote(resource, "blob", "file", "queue")
    _check_service_options(target, options)
    _print_token(target, options)


for _command, _more in (
    (account_sas, (*_COMMON, *_WHERE)),
    (service_sas, (*_moments, _scope, *_overrides, *_texts(*_TABLE_KEYS), *_COMMON, *_WHERE)),
    (
        user_delegation,
        (*_texts(*_DELEGATION), *_moments, *_overrides, *_COMMON, _WHERE[0], location_option),
    ),
):
    for _decorate in _more:
        # Decorators of a command that is there already append to its options.
        _decorate(_command)


def _check_service_options(target: RemotePath, options: Mapping[str, Any]) -> None:
    """What cannot be signed for this kind of resource must not be given."""
    if not target.container:
        raise BadUsage(f"{target} is a whole account: 'kyanite sas account' makes tokens for that.")
    if target.name and target.service in ("queue", "table"):
        raise BadUsage(f"{target} has one name too many.")
    names = {
        "blob": ("snapshot", "version_id", "ses"),
        "table": tuple(field for _, field, _ in _TABLE_KEYS),
        "overrides": tuple(field for _, field, _ in _OVERRIDES),
    }
    fits = {"blob": ("blob", "overrides"), "file": ("overrides",), "queue": (), "table": ("table",)}
    for kind, fields in names.items():
        for name in fields:
            if options.get(name) and kind not in fits[target.service]:
                spelt = _spelling(name)
                raise BadUsage(f"{spelt} has no meaning for a token of the {target.service} service.")


def _spelling(name: str) -> str:
    rows = {field: option for option, field, _ in (*_OVERRIDES, *_TABLE_KEYS)}
    return rows.get(name, {"ses": "--encryption-scope"}.get(name, f"--{name.replace('_', '-')}"))


def _print_token(target: RemotePath, options: dict[str, Any]) -> None:
    from kyanite.server.terminal.sas_tokens import make_token

    location: Path = options.pop("location")
    server = RunningServer(location, options.pop("account_key", None))
    as_url = options.pop("as_url")
    token = make_token(server, target, options)
    click.echo(f"{_url(server, target, options)}{token}" if as_url else token)


def _url(server: RunningServer, target: RemotePath, options: Mapping[str, Any]) -> str:
    from urllib.parse import quote

    from kyanite.server.terminal.connection_strings import endpoint_of

    service = target.service
    if "ss" in options:
        letters = {"b": "blob", "q": "queue", "t": "table", "f": "file"}
        service = letters[options["ss"][0]]
    url = endpoint_of(server.description, service, target.account)
    inside = "/".join(part for part in (target.container, target.name) if part)
    moments = {"snapshot": options.get("snapshot"), "versionid": options.get("version_id")}
    parameters = "".join(f"{name}={quote(value, safe='')}&" for name, value in moments.items() if value)
    return f"{url}/{quote(inside, safe='/~')}?{parameters}"
