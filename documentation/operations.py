"""What the server does, from the tables that it does it by."""

from collections.abc import Iterable, Sequence

from documentation.markdown import code, table
from kyanite.services.blob.operations import OPERATIONS as BLOB
from kyanite.services.files.operations import OPERATIONS as FILE
from kyanite.services.queue.operations import OPERATIONS as QUEUE
from kyanite.services.rest.operations import Op, not_yet
from kyanite.services.smb.commands import COMMANDS, not_built
from kyanite.services.table.operations import OPERATIONS as TABLE
from kyanite.wire.smb2.header import Command

TABLES = {"blob": BLOB, "queue": QUEUE, "table": TABLE, "file": FILE}
_KINDS = {
    "blob": {"service": "", "container": "/container", "object": "/container/blob"},
    "queue": {
        "service": "",
        "container": "/queue",
        "messages": "/queue/messages",
        "object": "/queue/messages/id",
    },
    "table": {
        "service": "",
        "tables": "/Tables",
        "container": "/Tables('table')",
        "entities": "/table",
        "object": "/table(PartitionKey='…',RowKey='…')",
        "batch": "/$batch",
    },
    "file": {"service": "", "container": "/share", "object": "/share/path"},
}


def names() -> set[str]:
    return {op.name for operations in TABLES.values() for op in operations}


def rest_table(service: str) -> str:
    """One line for each operation; rows that differ by a header only are one operation to clients."""
    lines: dict[tuple[str, str], list[Op]] = {}
    for op in TABLES[service]:
        lines.setdefault((op.name, op.resource), []).append(op)
    rows = [
        [
            name,
            _request(service, ops),
            _each(_sas(op.access.account) for op in ops),
            _each(_sas(op.access.service) for op in ops),
            _each(_role(op) for op in ops),
            "501" if all(op.handle is not_yet for op in ops) else "yes",
        ]
        for (name, _), ops in lines.items()
    ]
    return table(("operation", "request", "account SAS", "service SAS", "role action", "here"), rows)


def counts() -> str:
    """How many operations each service has, for the summary."""
    rows = []
    for service, operations in TABLES.items():
        there = {op.name for op in operations if op.handle is not not_yet}
        missing = sorted({op.name for op in operations} - there)
        rows.append([service.title(), str(len(there)), ", ".join(missing) or "none"])
    return table(("service", "operations", "in the reference, answered with 501"), rows)


def smb_table() -> str:
    rows = []
    for command in Command:
        row = COMMANDS.get(command)
        state = "no" if row is None or row.handler is not_built else "yes"
        rows.append([command.name, state])
    return table(("command", "here"), rows)


def _request(service: str, ops: Sequence[Op]) -> str:
    op = ops[0]
    parameters = "&".join(f"{name}={value}" for name, value in op.query.items() if value)
    path = _KINDS[service][op.resource] or "/"
    line = code(f"{op.methods.replace(' ', ', ')} {path}{'?' if parameters else ''}{parameters}")
    return f"{line} with {code(op.when.lstrip('?'))}" if op.when and len(ops) == 1 else line


def _each(texts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(text for text in texts if text)) or "no"


def _sas(needed: str | None) -> str:
    if needed is None:
        return ""
    kind, _, letters = needed.rpartition(" ")
    if letters == "*":
        return "any"
    text = " and ".join("/".join(part) for part in letters.split("&"))
    return f"{kind}: {text}" if kind else text


def _role(op: Op) -> str:
    role = op.access.role
    if role is None:
        return ""
    if role == "*":
        return "any"
    return role.replace("&", " and ").replace("|", ", or ")
