"""From the options of ``kyanite sas`` to a token: fills the fields in, gets the key, and signs."""

from collections.abc import Sequence
from typing import Any

from kyanite.engine.clock import wall_clock
from kyanite.server.failures import BadUsage
from kyanite.server.terminal.paths import RemotePath
from kyanite.server.terminal.running_server import RunningServer
from kyanite.server.terminal.times import moment_text
from kyanite.values import Instant
from kyanite.wire import sas
from kyanite.wire.malformed import Malformed
from kyanite.wire.sas_encoding import SignedResource, encode

_DEFAULT_EXPIRY = "1h"
_NOT_FIELDS = (
    "https_only", "key_number", "snapshot", "version_id", "token", "headers", "parameters", "user_tenant_id",
)  # fmt: skip


def make_token(server: RunningServer, target: RemotePath, options: dict[str, Any]) -> str:
    """``options`` are fields of the token by name, and what else the command takes."""
    now = wall_clock()
    is_account = "srt" in options
    fields = {name: value for name, value in options.items() if name not in _NOT_FIELDS and value}
    if options["https_only"]:
        fields["spr"] = "https"
    if not is_account:
        fields |= _resource_fields(target, options)
    fields |= _times(fields, now)
    order = (
        sas.ACCOUNT_PERMISSIONS if is_account else sas.permission_order(target.service, fields.get("sr", ""))
    )
    if "sp" in fields:
        fields["sp"] = _ordered(fields["sp"], order)
    elif "si" not in fields:
        raise BadUsage("A token needs --permissions, or a --policy that has them.")
    headers = _pairs(options.get("headers", ()), ":", "--header")
    parameters = _pairs(options.get("parameters", ()), "=", "--parameter")
    if "token" in options:
        fields |= {"srh": ",".join(headers), "srq": ",".join(parameters)}
        key = _delegation_key(server, target, options, fields, now)
    else:
        key = server.key(target.account, options["key_number"])
    resource = SignedResource(
        target.service,
        target.account,
        target.container,
        target.name,
        options.get("snapshot") or options.get("version_id") or "",
        headers,
        parameters,
    )
    try:
        return encode(fields, resource, key)
    except Malformed:
        raise BadUsage(
            "These options do not make a token: an address, a letter or the version cannot be used, or they do not go "
            "together."
        ) from None


def _resource_fields(target: RemotePath, options: dict[str, Any]) -> dict[str, str]:
    snapshot, version = options.get("snapshot"), options.get("version_id")
    if snapshot and version:
        raise BadUsage("A token is for a snapshot or for a version, not for both.")
    match target.service:
        case "blob":
            if (snapshot or version) and not target.name:
                raise BadUsage("A snapshot or a version is one of a blob.")
            kind = "bs" if snapshot else "bv" if version else "b"
            return {"sr": kind if target.name else "c"}
        case "file":
            return {"sr": "f" if target.name else "s"}
        case "table":
            return {"tn": target.container}
        case _:
            return {}


def _times(fields: dict[str, str], now: Instant) -> dict[str, str]:
    expiry = fields.get("se") or ("" if "si" in fields else _DEFAULT_EXPIRY)
    times = {"st": moment_text(fields["st"], now, "--start")} if "st" in fields else {}
    return times | ({"se": moment_text(expiry, now, "--expires")} if expiry else {})


def _ordered(letters: str, order: str) -> str:
    """In the order that the service requires, which nobody remembers."""
    for letter in letters:
        if letter not in order:
            raise BadUsage(f"--permissions has no letter {letter!r} here: there are {order}.")
    return "".join(letter for letter in order if letter in letters)


def _pairs(texts: Sequence[str], mark: str, option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, found, value = text.partition(mark)
        if not found or not name.strip():
            raise BadUsage(f"{option} is NAME{mark}VALUE.")
        pairs[name.strip().lower()] = value.strip()
    return pairs


def _delegation_key(
    server: RunningServer, target: RemotePath, options: dict[str, Any], fields: dict[str, str], now: Instant
) -> bytes:
    """Get a key for as long as the token lives, and put what it states into the fields."""
    from kyanite.server.terminal.delegation import request_key

    key, stated = request_key(
        server,
        target,
        options["token"],
        starts=moment_text("0s", now, "now"),
        expires=fields["se"],
        user_tenant_id=options["user_tenant_id"],
    )
    fields |= stated
    return key
