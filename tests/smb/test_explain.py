"""A refusal over REST is explained by the handle of a real SMB client, whichever workers serve the two."""

from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from kyanite.server.management.client import call
from tests.server_process import ServerProcess
from tests.smb.messages import GENERIC_READ, SHARE_ALL, connected
from tests.smb.shares import KyaniteShare
from tests.smb.test_matrix import lock

EXCLUSIVE_AT_ONCE = 0x12
READ = 1


def explained(server: ServerProcess, refused: pytest.ExceptionInfo[HttpResponseError]) -> Any:
    response: Any = refused.value.response
    return call(server.location, "explain", request_id=response.headers["x-ms-request-id"])


def test_a_share_mode_and_a_lock(server: ServerProcess, share: KyaniteShare) -> None:
    share.put("f", b"0123456789")
    file = share.rest.get_file_client("f")
    with connected(share.login, share.name) as client:
        reader = client.create("f", access=GENERIC_READ, sharing=READ)
        with pytest.raises(HttpResponseError) as refused:
            file.upload_range(b"x", 0, 1)
        found = explained(server, refused)
        assert (found["status"], found["code"], found["operation"]) == (409, "SharingViolation", "Put Range")
        assert "A handle of the client 127.0.0.1:" in found["sentences"][1]
        assert "for reading and lets others open it for reading." in found["sentences"][1]
        client.close(reader)
        locker = client.create("f", access=GENERIC_READ, sharing=SHARE_ALL)
        lock(locker, 2, 3, EXCLUSIVE_AT_ONCE)
        with pytest.raises(HttpResponseError) as refused:
            file.upload_range(b"x", 4, 1)
        found = explained(server, refused)
        assert found["code"] == "FileLockConflict"
        assert "an exclusive lock of the client 127.0.0.1:" in found["sentences"][1]
        assert "covers 3 bytes from 2 on." in found["sentences"][1]
