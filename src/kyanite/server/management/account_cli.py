"""``kyanite account …``: the accounts of a running server."""

from pathlib import Path

import click

from kyanite.server.management.output import show
from kyanite.server.options import location_option


@click.group(help="The accounts of a running server.")
def account() -> None:
    pass


@account.command("list", help="List the accounts, without their keys.")
@location_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_accounts(location: Path, as_json: bool) -> None:
    from kyanite.server.management.client import call

    show(call(location, "account list"), as_json=as_json)
