"""``kyanite container …``: containers of a running server, and what protects them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kyanite.server.management.output import show
from kyanite.server.options import location_option

DecoratedCommand = TypeVar("DecoratedCommand", bound=Callable[..., object])


def _arguments(command: DecoratedCommand) -> DecoratedCommand:
    """The account and the container, and what every command has."""
    for decorate in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        location_option,
        click.argument("container"),
        click.argument("account"),
    ):
        command = decorate(command)
    return command


_days = click.option("--days", type=int, required=True, help="How long a blob is kept, 1 to 146000.")


def _call(command: str, location: Path, as_json: bool, **arguments: Any) -> None:
    from kyanite.server.management.client import call

    show(call(location, command, **arguments), as_json=as_json)


@click.group(help="Containers of a running server, and what protects their blobs.")
def container() -> None:
    pass


@container.command("create", help="Create a container.")
@_arguments
@click.option(
    "--version-level-immutability",
    is_flag=True,
    help="Its blobs, versions and snapshots have policies and holds of their own. This cannot be undone.",
)
def create(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container create", location, as_json, **arguments)


@container.command("set", help="Change a container.")
@_arguments
@click.option(
    "--version-level-immutability",
    is_flag=True,
    required=True,
    help="Its blobs, versions and snapshots have policies and holds of their own. This cannot be undone.",
)
def set_settings(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container set", location, as_json, **arguments)


@container.command("delete", help="Delete a container; one that is protected must be empty.")
@_arguments
def delete(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container delete", location, as_json, **arguments)


@container.group(
    "immutability",
    help="The immutability policy of a container: of all its blobs, or the default of new ones.",
)
def policy() -> None:
    pass


@policy.command("show", help="Show the policy and the legal holds.")
@_arguments
def show_policy(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container immutability show", location, as_json, **arguments)


@policy.command("set", help="Set a policy, or change one that is not locked.")
@_arguments
@_days
@click.option(
    "--append-writes",
    type=click.Choice(["append", "all"]),
    help="Append blobs may grow; 'all' is for block blobs too, which no operation here appends to.",
)
def set_policy(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container immutability set", location, as_json, **arguments)


@policy.command("lock", help="Lock the policy for ever: it can then only be extended, five times.")
@_arguments
def lock_policy(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container immutability lock", location, as_json, **arguments)


@policy.command("extend", help="Make a locked policy longer.")
@_arguments
@_days
def extend_policy(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container immutability extend", location, as_json, **arguments)


@policy.command("delete", help="Delete a policy that is not locked.")
@_arguments
def delete_policy(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container immutability delete", location, as_json, **arguments)


@container.group("legal-hold", help="The legal holds of a container, each named by a tag.")
def legal_hold() -> None:
    pass


@legal_hold.command("set", help="Add legal holds: no blob can be changed or deleted until they are cleared.")
@_arguments
@click.argument("tags", nargs=-1, required=True)
@click.option(
    "--append-writes/--no-append-writes", default=None, help="Whether append blobs may grow meanwhile."
)
def set_legal_hold(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container legal-hold set", location, as_json, **arguments)


@legal_hold.command("clear", help="Remove the legal holds of these tags.")
@_arguments
@click.argument("tags", nargs=-1, required=True)
def clear_legal_hold(location: Path, as_json: bool, **arguments: Any) -> None:
    _call("container legal-hold clear", location, as_json, **arguments)
