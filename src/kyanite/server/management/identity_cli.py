"""``kyanite identity …``: what concerns bearer tokens and user delegation in a running server."""

from pathlib import Path

import click

from kyanite.server.management.output import show
from kyanite.server.options import location_option


@click.group(help="User delegation in a running server.")
def identity() -> None:
    pass


@identity.command(
    "revoke-delegation-keys",
    help="Revoke all user delegation keys of an account, and every token that was signed with one.",
)
@click.argument("account")
@location_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def revoke_delegation_keys(account: str, location: Path, as_json: bool) -> None:
    from kyanite.server.management.client import call

    show(call(location, "identity revoke-delegation-keys", account=account), as_json=as_json)
