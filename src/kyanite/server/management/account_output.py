"""How the command line shows accounts to people: a line for each key, and settings that are not the usual ones."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

USUAL = {
    "kind": "StorageV2",
    "sku": "Standard_RAGRS",
    "shared_key_access": True,
    "public_access": True,
    "require_https": False,
    "sas_policy": "none",
    "last_access_tracking": False,
    "version_level_immutability": False,
    "read_only": False,
    "versioning": False,
    "blob_soft_delete_days": 0,
    "allow_permanent_delete": False,
    "container_soft_delete_days": 0,
}
"""What a new account has, unless it was added with something else."""


def account_lines(accounts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each: name, number of keys, and what is not as usual."""
    widest = max((len(account["name"]) for account in accounts), default=0)
    for account in accounts:
        words = [
            f"{account['name']:<{widest}}",
            f"{account['keys']} key{'' if account['keys'] == 1 else 's'}",
        ]
        words += [
            f"{name}={setting_text(value)}"
            for name, value in account["settings"].items()
            if name not in USUAL or value != USUAL[name]
        ]
        if account["stamp"] != "main":
            words.append(f"stamp={account['stamp']}")
        yield "  ".join(words)


def setting_lines(account: Mapping[str, Any]) -> Iterator[str]:
    """All settings of an account, and where those were stated that no command can change."""
    stated = account["stated_by"]
    yield str(account["name"])
    for name, value in account["settings"].items():
        where = f"  (stated by {stated[name]})" if name in stated else ""
        yield f"  {name}={setting_text(value)}{where}"


def key_lines(account: Mapping[str, Any]) -> Iterator[str]:
    yield f"name: {account['name']}"
    for number, key in enumerate(account["keys"], 1):
        yield f"key {number}: {key}"
    if account.get("note"):
        yield f"note: {account['note']}"


def setting_text(value: object) -> str:
    match value:
        case True:
            return "on"
        case False:
            return "off"
        case None:
            return "none"
        case _:
            return str(value)
