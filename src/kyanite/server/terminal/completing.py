"""What the shell may offer for an argument: accounts, containers and names of the server that runs, if it is quick.

Whatever goes wrong, nothing is offered: a shell that completes must not complain.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kyanite.server.options import DEFAULT_LOCATION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SCHEMES = ("blob://", "file://")
_OFFERED_MAX = 200
_ANSWER_SECONDS = 1.0


def accounts(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    try:
        return [name for name in _accounts(_location(context)) if name.startswith(incomplete)]
    except Exception:
        return []


def remote_paths(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Paths of this machine are left to the shell."""
    from click.shell_completion import CompletionItem

    try:
        found = _remote(context, incomplete)
    except Exception:
        found = []
    if "://" in incomplete:
        return [CompletionItem(text) for text in found]
    return [*(CompletionItem(text) for text in found), CompletionItem(incomplete, type="file")]


def _remote(context: click.Context, incomplete: str) -> list[str]:
    scheme, found, rest = incomplete.partition("://")
    if not found:
        return [each for each in _SCHEMES if each.startswith(incomplete)]
    location = _location(context)
    if "/" not in rest:
        return [f"{scheme}://{name}/" for name in _accounts(location) if name.startswith(rest)]
    return _stored(location, f"{scheme}://", rest)


def _stored(location: Path, scheme: str, rest: str) -> list[str]:
    from itertools import islice

    from kyanite.server.terminal import paths
    from kyanite.server.terminal.remote_items import RemoteItems
    from kyanite.server.terminal.running_server import RunningServer

    path = paths.parse_remote(scheme + rest, "blob", "file")
    items = RemoteItems(RunningServer(location))
    try:
        if "/" not in rest.partition("/")[2]:
            found = items.containers(path)
        elif path.service == "file":
            folder = path.name.rpartition("/")[0]
            found = items.children(paths.RemotePath("file", path.account, path.container, folder))
        else:
            found = items.children(path)
        texts = (str(item.path).rstrip("/") + ("/" if item.is_directory else "") for item in found)
        return [text for text in islice(texts, _OFFERED_MAX) if text.startswith(scheme + rest)]
    finally:
        items.close()


def _accounts(location: Path) -> list[str]:
    from kyanite.server.management.client import call_within

    described: Any = call_within(_ANSWER_SECONDS, location, "server describe", {})
    return [account["name"] for account in described["accounts"]]


def _location(context: click.Context) -> Path:
    given = context.params.get("location") or os.environ.get("KYANITE_LOCATION")
    return Path(given) if given else DEFAULT_LOCATION
