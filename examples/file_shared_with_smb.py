"""One file, two protocols: what an SMB client has open binds REST clients, and a lease of REST binds SMB clients.

REST by itself has no conditions for files: the last writer wins. An SMB client says with every open what it does and
what others may do meanwhile. A file that it opens for writing and shares with no one is locked until it is closed. A
file that it deletes is gone when the last client has closed it, and until then pending.

The connection string names the file endpoint. SMB is at the same host, at port 445 or SMB_PORT:

    AZURE_STORAGE_CONNECTION_STRING="..." SMB_PORT=10445 python examples/file_shared_with_smb.py
"""

import os
import uuid
from typing import Any
from urllib.parse import urlsplit

import smbclient
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareFileClient, ShareServiceClient
from smbprotocol.exceptions import SMBOSError

SMB_PORT = int(os.environ.get("SMB_PORT", "445"))


def main() -> None:
    service = ShareServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
    share = service.create_share(f"shared-{uuid.uuid4()}")
    over_rest = share.get_file_client("report.txt")
    over_rest.upload_file("draft")
    host = urlsplit(service.url).hostname or ""
    account = service.credential
    logon = {"username": account.account_name, "password": account.account_key, "port": SMB_PORT}
    over_smb = rf"\\{host}\{share.share_name}\report.txt"

    lock_and_write(over_rest, over_smb, logon)
    lease_and_write(over_rest, over_smb, logon)
    delete_while_open(over_rest, over_smb, logon)
    print(f"in the share: {[entry.name for entry in share.list_directories_and_files()]}")
    smbclient.reset_connection_cache()
    share.delete_share()


def lock_and_write(over_rest: ShareFileClient, over_smb: str, logon: dict[str, Any]) -> None:
    with smbclient.open_file(over_smb, "w", share_access=None, **logon) as file:
        file.write("written over SMB")
        attempt("open over SMB and shared with no one: REST reads", over_rest.download_file)
        [handle] = over_rest.list_handles()
        rights = " and ".join(str(right.value).lower() for right in handle.access_rights)
        print(f"the handle is listed: its client may {rights}")
    print(f"closed: REST reads {over_rest.download_file(encoding='utf-8').readall()!r}")
    with smbclient.open_file(over_smb, "r", share_access="rwd", **logon) as file:
        over_rest.upload_range(b"written by REST!", 0, 16)
        print(f"open and shared: REST writes, and SMB reads {file.read()!r}")


def lease_and_write(over_rest: ShareFileClient, over_smb: str, logon: dict[str, Any]) -> None:
    lease = over_rest.acquire_lease()
    try:
        smbclient.open_file(over_smb, "r+", share_access="rwd", **logon)
    except SMBOSError as error:
        print(f"leased over REST: SMB opens it for writing: {error.strerror}")
    with smbclient.open_file(over_smb, "r", share_access="rwd", **logon) as file:
        print(f"leased over REST: SMB reads {file.read()!r}")
    lease.release()


def delete_while_open(over_rest: ShareFileClient, over_smb: str, logon: dict[str, Any]) -> None:
    with smbclient.open_file(over_smb, "r", share_access="rwd", **logon) as file:
        smbclient.remove(over_smb, **logon)
        attempt("deleted over SMB while it is open: REST reads", over_rest.download_file)
        print(f"the client that has it open still reads {file.read()!r}")
    attempt("closed: REST reads", over_rest.download_file)


def attempt(what: str, operation: Any) -> None:
    try:
        operation()
    except HttpResponseError as error:
        code = error.error_code  # type: ignore[attr-defined]
        print(f"{what}: {error.status_code} {getattr(code, 'value', code)}")


if __name__ == "__main__":
    main()
