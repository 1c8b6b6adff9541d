"""The accounts, one account, and how clients connect to it."""

import base64

from kyanite.model.accounts import Account
from kyanite.services.console.visit import Visit
from kyanite.wire.http import Response


async def show_accounts(visit: Visit) -> Response:
    accounts = visit.accounts
    if len(accounts) == 1:
        return visit.go_to("/account", account=accounts[0].name)
    return visit.page("accounts.html", listed=accounts)


async def show_account(visit: Visit) -> Response:
    return visit.page("account.html", **_values(visit, visit.account, with_keys=False))


async def show_keys(visit: Visit) -> Response:
    """The same page with keys, which a mere link does not show."""
    return visit.page("account.html", **_values(visit, visit.account, with_keys=True))


def _values(visit: Visit, account: Account, *, with_keys: bool) -> dict[str, object]:
    endpoints = visit.endpoints()
    smb = visit.environment.addresses.get("smb")
    return {
        "settings": account.settings,
        "endpoints": endpoints,
        "smb": None if smb is None else {"host": smb[0], "port": smb[1]},
        "keys": [base64.b64encode(key).decode() for key in account.keys] if with_keys else [],
        "connection_strings": [connection_string(account, key, endpoints) for key in account.keys]
        if with_keys
        else [],
        "section": "account",
    }


def connection_string(account: Account, key: bytes, endpoints: dict[str, str]) -> str:
    scheme = next(iter(endpoints.values()), "http").partition(":")[0]
    parts = {
        "DefaultEndpointsProtocol": scheme,
        "AccountName": account.name,
        "AccountKey": base64.b64encode(key).decode(),
        **{f"{name.title()}Endpoint": url for name, url in endpoints.items()},
    }
    return ";".join(f"{name}={value}" for name, value in parts.items())
