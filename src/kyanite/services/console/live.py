"""Concurrency, live: leases, open handles, pending deletes and uncommitted blocks of an account.

The page asks for its tables again every few seconds. What they show is read from the store, not from a cache.
"""

from collections.abc import Sequence

from kyanite.model.blobs import activity as blob_activity
from kyanite.model.blobs.activity import BlobPosition
from kyanite.model.files import activity as file_activity
from kyanite.model.files.activity import FilePosition, OpenHandle
from kyanite.rules.lease_records import Lease
from kyanite.rules.leases import State
from kyanite.rules.oplocks import Caching
from kyanite.rules.share_modes import Rights
from kyanite.services.console import rendering
from kyanite.services.console.client import BadInput, path_of
from kyanite.services.console.visit import Visit
from kyanite.values import Instant, iso_text, unix_seconds
from kyanite.wire.http import Response

_RIGHTS = ((Rights.READ, "read"), (Rights.WRITE, "write"), (Rights.DELETE, "delete"))
_OPLOCKS = {
    Caching.NONE: "none",
    Caching.READ: "level II",
    Caching.READ | Caching.WRITE: "exclusive",
    Caching.READ | Caching.WRITE | Caching.HANDLE: "batch",
}
_LOCKS_MAX = 20
"""How many locks of a handle are listed."""


async def show_live(visit: Visit) -> Response:
    return visit.page("live.html", **await _values(visit))


async def show_part(visit: Visit) -> Response:
    """The tables alone, for the script of the page."""
    return rendering.html(visit.render("live_part.html", **await _values(visit)))


async def _values(visit: Visit) -> dict[str, object]:
    account, only = visit.account, visit.get("only")
    engine = account.store.engine
    blobs = files = None
    if only != "file":
        blobs = await blob_activity.find(
            engine, account.name, BlobPosition(visit.get("container"), visit.get("name"))
        )
    if only != "blob":
        files = await file_activity.find_leases(
            engine, account.name, FilePosition(visit.get("share"), visit.get("path"))
        )
    opens = await file_activity.find_handles(engine, account.name)
    leased = [
        {"service": "blob", "of": each.container, "name": each.name, **_lease(each.lease, each.state)}
        for each in ([] if blobs is None else blobs.leased)
    ] + [
        {"service": "file", "of": each.share, "name": each.path, **_lease(each.lease, each.state)}
        for each in ([] if files is None else files.leased)
    ]
    return {
        "leased": leased,
        "handles": [_handle(each) for each in opens.handles],
        "has_more_handles": opens.has_more,
        "pending_deletes": [
            {"share": share, "path": opened.path, "handles": opened.handle_count}
            for share, opened in opens.pending_deletes
        ],
        "uncommitted": [
            {
                "container": each.container,
                "name": each.name,
                "blocks": each.staging.count,
                "last": iso_text(each.staging.last_at),
            }
            for each in ([] if blobs is None else blobs.uncommitted)
        ],
        "more": _where_next(
            None if blobs is None else blobs.next_start, None if files is None else files.next_start
        ),
        "searched": {name: visit.get(name) for name in ("container", "name", "share", "path", "only")},
        "section": "live",
    }


def _where_next(blobs: BlobPosition | None, files: FilePosition | None) -> dict[str, str]:
    """The parameters of the page that searches on; none if everything was searched."""
    more: dict[str, str] = {}
    if blobs is not None:
        more |= {"container": blobs.container, "name": blobs.name}
    if files is not None:
        more |= {"share": files.share, "path": files.path}
    if more and (blobs is None or files is None):
        more["only"] = "blob" if files is None else "file"
    return more


def _lease(lease: Lease, state: State) -> dict[str, object]:
    ends_at = lease.breaks_at if state is State.BREAKING else lease.ends_at
    return {
        "id": lease.id,
        "state": state.value,
        "ends": None if ends_at is None else _milliseconds(ends_at),
    }


def _milliseconds(instant: Instant) -> int:
    return unix_seconds(instant) * 1000 + instant // 10_000 % 1000


def _handle(each: OpenHandle) -> dict[str, object]:
    handle = each.handle
    kind = "lease" if each.has_lease else "oplock"
    level = _letters(each.caching) if each.has_lease else _OPLOCKS.get(each.caching, _letters(each.caching))
    return {
        "id": handle.id,
        "share": each.share,
        "path": each.opened.path,
        "client": f"{handle.client_name} {handle.client_ip}".strip(),
        "access": _rights(Rights(handle.access)) or "attributes",
        "shares": _rights(Rights(handle.share)) or "nothing",
        "caching": f"{kind} {level}" if each.caching else "none",
        "is_breaking": each.is_breaking,
        "locks": [
            f"{'exclusive' if lock.is_exclusive else 'shared'} {lock.start}+{lock.length}"
            for lock in handle.locks[:_LOCKS_MAX]
        ],
        "locks_more": max(0, len(handle.locks) - _LOCKS_MAX),
        "opened": iso_text(handle.opened_at),
        "is_connected": handle.is_connected,
        "deletes": handle.deletes_on_close or each.opened.is_delete_pending,
    }


def _rights(rights: Rights) -> str:
    return ", ".join(word for right, word in _RIGHTS if right & rights)


def _letters(caching: Caching) -> str:
    letters: Sequence[tuple[Caching, str]] = (
        (Caching.READ, "R"),
        (Caching.HANDLE, "H"),
        (Caching.WRITE, "W"),
    )
    return "".join(letter for flag, letter in letters if flag & caching)


async def break_lease(visit: Visit) -> Response:
    """Break it at once, whatever time it has left."""
    service, of, name = visit.need("service"), visit.need("of"), visit.get("name")
    headers = {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}
    query: dict[str, str | int] = {"comp": "lease"}
    if service not in ("blob", "file"):
        raise BadInput("That service has no leases.")
    if not name:
        query["restype"] = "container" if service == "blob" else "share"
    elif service == "file":
        del headers["x-ms-lease-break-period"]  # A lease of a file is broken at once, and takes no period.
    await visit.client.call(service, "PUT", path_of(of, name) if name else path_of(of), query, headers)
    return visit.go_to("/live", "broken", account=visit.account.name)


async def close_handle(visit: Visit) -> Response:
    share, path = visit.need("share"), visit.get("path")
    where = path_of(share, path) if path else path_of(share)
    headers = {"x-ms-handle-id": visit.need("handle")}
    answer = await visit.client.call("file", "PUT", where, {"comp": "forceclosehandles"}, headers)
    if answer.headers.get("x-ms-number-of-handles-closed") == "0":
        raise BadInput("The handle is closed already.")
    return visit.go_to("/live", "closed", account=visit.account.name)
