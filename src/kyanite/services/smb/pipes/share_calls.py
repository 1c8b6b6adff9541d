"""What is called on the pipe ``srvsvc``: the list of the account's shares, and one share of it."""

from kyanite.model.accounts import Account
from kyanite.model.files import share_listing
from kyanite.model.files.share import ShareKey, find
from kyanite.model.files.share_listing import ShareListing
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import rpc, srvsvc
from kyanite.wire.smb2.rpc import Bind, Call
from kyanite.wire.smb2.srvsvc import Operation, Share

_PAGES_MAX = 4
"""Of 5,000 shares. More than that no client shows."""
_IPC = Share("IPC$", srvsvc.SHARE_PIPE)


async def answer(account: Account, bound: Bind | None, call: Call) -> list[bytes]:
    """The packets that answer a call."""
    if bound is None:
        return [rpc.encode_fault(call, rpc.FAULT_UNKNOWN_OPERATION)]
    try:
        if call.operation == Operation.SHARE_ENUM:
            listing = srvsvc.decode_share_enum(call.stub)
            stub = srvsvc.encode_share_enum(listing, [*await _shares(account), _IPC])
        elif call.operation == Operation.SHARE_GET_INFO:
            one = srvsvc.decode_share_get_info(call.stub)
            stub = srvsvc.encode_share_get_info(one, await _share(account, one.name))
        else:
            return [rpc.encode_fault(call, rpc.FAULT_UNKNOWN_OPERATION)]
    except Malformed:
        return [rpc.encode_fault(call, rpc.FAULT_BAD_STUB_DATA)]
    return rpc.encode_response(call, stub, bound.max_fragment_bytes)


async def _shares(account: Account) -> list[Share]:
    found: list[Share] = []
    listing = ShareListing()
    for _ in range(_PAGES_MAX):
        page = await share_listing.list_shares(account.store.engine, account.name, listing)
        found += [Share(each.name, srvsvc.SHARE_DISK) for each in page.items if not each.record.speaks_nfs]
        if page.next_start is None:
            break
        listing = ShareListing(first=page.next_start)
    return found


async def _share(account: Account, name: str) -> Share | None:
    if name.upper() == _IPC.name:
        return _IPC
    record = await find(account.store.engine, ShareKey(account.name, name.lower()))
    return None if record is None or record.speaks_nfs else Share(name.lower(), srvsvc.SHARE_DISK)
