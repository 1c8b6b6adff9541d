"""``kyanite explain REQUEST-ID``: why a request was refused, in plain words."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kyanite.server.management.output import show
from kyanite.server.options import location_option
from kyanite.server.terminal.help_sections import examples


@click.command(
    help="Say why a request was refused. REQUEST-ID is the x-ms-request-id of its response, which is in the message of "
    "the error as well. Each worker of the server knows its last 10,000 refusals.",
    epilog=examples(
        "kyanite explain 5d97c6c6-4699-4537-9fbe-c0e6f20ff593",
        "kyanite explain 5d97c6c6-4699-4537-9fbe-c0e6f20ff593 --json",
    ),
)
@click.argument("request_id", metavar="REQUEST-ID")
@location_option
@click.option("--account", metavar="NAME", help="Only if the request was for this account.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(request_id: str, location: Path, account: str | None, as_json: bool) -> None:
    from kyanite.server.management.client import call

    found = call(location, "explain", request_id=request_id, account=account)
    if as_json:
        show(found, as_json=True)
    else:
        for line in lines_of(found):
            click.echo(line)


def lines_of(found: Mapping[str, Any]) -> list[str]:
    """The explanation as text: what was asked, how it was answered, and why."""
    lines = [
        f"{found['operation'] or 'A request'}: {found['method']} {found['url']}".rstrip(),
        f"Answered with {found['status']} {found['code']} at {found['at']}.",
    ]
    who = [f"{name} {found[name.replace(' ', '_')]}" for name in _WHO if found[name.replace(" ", "_")]]
    if who:
        lines.append(f"From {', '.join(who)}.")
    lines += ["", *found["sentences"]]
    if found["string_to_sign"]:
        lines += ["", "The string to sign that the server computed:", "", found["string_to_sign"]]
    return lines


_WHO = ("client", "account", "user agent", "client request id")
