"""``kyanite token``: a token of the built-in issuer for scripts, signed with the key in the store's folder."""

import re
from pathlib import Path

import click

from kyanite.rules.roles import is_guid, same_id
from kyanite.server.failures import BadUsage, Failure
from kyanite.server.issuer.clients import Identity
from kyanite.server.options import location_option

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_SECONDS_MAX = 365 * 86_400


@click.command(
    help="Print a token of the development issuer, which `kyanite serve --dev-identity builtin` has made. "
    "Who can read the folder of the store can make one for anybody."
)
@location_option
@click.option(
    "--principal",
    default="",
    help="Whom the token is for: the name, client id or object id of one that is configured, or any other object "
    "id.  [default: the first client]",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="ID",
    help="A group that the token names besides those configured; may be repeated.",
)
@click.option("--audience", default="https://storage.azure.com", show_default=True, help="What it is for.")
@click.option("--expires", default="1h", show_default=True, help="When it expires, as in 900, 15m, 2h or 7d.")
def token(location: Path, principal: str, groups: tuple[str, ...], audience: str, expires: str) -> None:
    seconds = _seconds(expires)
    from kyanite.server.issuer import forms, private_files, published, signing_key
    from kyanite.server.issuer.tokens import TokenTerms, claims_of, signed

    if not forms.is_audience(audience):
        raise BadUsage("--audience is to be a URI or the id of an application.")
    folder = private_files.identity_folder(location)
    issuer, key = published.read(folder), signing_key.load(folder)
    if issuer is None or key is None:
        raise Failure(
            f"The store {location} has no development issuer. `kyanite serve --dev-identity builtin` makes one."
        )
    identity = _identity(issuer.principals, principal)
    named = Identity(
        identity.oid,
        identity.client_id,
        tuple(dict.fromkeys((*identity.groups, *groups))),
        identity.app_roles,
        identity.name,
    )
    terms = TokenTerms(issuer.tenant, audience, _now(location), seconds)
    click.echo(signed(key, claims_of(issuer.base, named, terms)))


def _now(location: Path) -> int:
    """The time of the server, if it runs: one for tests may be ahead, and judges tokens by its own clock."""
    from kyanite.engine.clock import wall_clock
    from kyanite.server.management.client import call
    from kyanite.values import unix_seconds

    try:
        return int(call(location, "server time"))
    except Failure:
        return unix_seconds(wall_clock())


def _seconds(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text.strip())
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 1 <= seconds <= _SECONDS_MAX:
        raise BadUsage("--expires is a time from 1s to 365d, as in 900, 15m, 2h or 7d.")
    return seconds


def _identity(known: tuple[Identity, ...], text: str) -> Identity:
    if not text:
        return known[0]
    for each in known:
        if text == each.name or any(same_id(text, own) for own in (each.client_id, each.oid) if own):
            return each
    if is_guid(text):
        return Identity(text.lower())
    names = ", ".join(each.name or each.client_id or each.oid for each in known)
    raise BadUsage(f"The issuer knows no principal {text!r}, and that is no object id. It knows {names}.")
