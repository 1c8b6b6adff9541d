"""What clients see of files, and what they set: through smbclient, and through REST."""

import re

import pytest

from tests.smb.shares import KyaniteShare, Share
from tests.smb.smbclient import SmbClient

MEBIBYTE = 1024 * 1024


@pytest.fixture
def files(share: Share) -> KyaniteShare:
    if not isinstance(share, KyaniteShare):
        pytest.skip("smbd has no REST")
    return share


def test_all_information(smbclient: SmbClient, share: Share) -> None:
    share.put("File.txt", b"text")
    smbclient("utimes File.txt 2020:01:02-03:04:05 2021:01:02-03:04:05 2022:01:02-03:04:05 -1")
    output = smbclient("setmode File.txt +h", "allinfo File.txt")
    assert "create_time:    Thu Jan  2 03:04:05 2020 UTC" in output
    assert "access_time:    Sat Jan  2 03:04:05 2021 UTC" in output
    assert "write_time:     Sun Jan  2 03:04:05 2022 UTC" in output
    assert "stream: [::$DATA], 4 bytes" in output
    assert re.search(r"attributes: \w*H\w* ", output)


def test_rest_shows_what_smb_has_set(smbclient: SmbClient, files: KyaniteShare) -> None:
    files.put("File.txt", b"text")
    smbclient(
        "utimes File.txt 2020:01:02-03:04:05 2021:01:02-03:04:05 2022:01:02-03:04:05 -1",
        "setmode File.txt +rs",
    )
    found = files.rest.get_file_client("File.txt").get_file_properties()
    assert str(found.creation_time) == "2020-01-02 03:04:05+00:00"
    assert str(found.last_write_time) == "2022-01-02 03:04:05+00:00"
    assert str(found.file_attributes).split(" | ") == ["ReadOnly", "System", "Archive"]


def test_the_volume_is_the_quota(smbclient: SmbClient, files: KyaniteShare) -> None:
    files.rest.set_share_quota(3)
    files.put("File.txt", bytes(MEBIBYTE))
    output = smbclient("du")
    assert "786432 blocks of size 4096. 786176 blocks available" in output


def test_previous_versions(smbclient: SmbClient, files: KyaniteShare) -> None:
    files.make_directory("Folder")
    files.put("Folder/File.txt", b"old")
    files.put("Folder/gone", b"gone")
    files.rest.create_snapshot()
    files.rest.get_file_client("Folder/gone").delete_file()
    files.put("Folder/File.txt", b"newer")
    output = smbclient(r"allinfo Folder\File.txt")
    (token,) = re.findall(r"@GMT-[-.\d]+", output)
    assert output.endswith("size: 3\n")
    smbclient(rf"get {token}\Folder\File.txt old", r"get Folder\File.txt new")
    assert (smbclient.folder / "old").read_bytes() == b"old"
    assert (smbclient.folder / "new").read_bytes() == b"newer"
    listed = smbclient(rf"ls {token}\Folder\*")
    assert [line.split()[0] for line in listed.splitlines() if line.startswith("  ")] == [
        ".",
        "..",
        "File.txt",
        "gone",
    ]


def test_server_side_copy(smbclient: SmbClient, files: KyaniteShare) -> None:
    data = b"".join(number.to_bytes(8, "big") for number in range(40 * MEBIBYTE // 8)) + b"end"
    files.put("source", data)
    smbclient("scopy source copy")
    assert files.content("copy") == data
    files.rest.get_file_client("source").delete_file()
    assert files.content("copy") == data


def test_security_descriptors_are_those_of_rest(smbclient: SmbClient, files: KyaniteShare) -> None:
    text = "O:BAG:BUD:P(A;;FA;;;BA)(D;;GW;;;S-1-5-21-1-2-3-1001)"
    files.rest.get_file_client("File.txt").create_file(4, file_permission=text)
    output = smbclient("showacls", "ls File.txt")
    assert "Owner SID:\tS-1-5-32-544" in output
    assert "Group SID:\tS-1-5-32-545" in output
    assert re.search(r"ACCESS DENIED.*?SID: S-1-5-21-1-2-3-1001", output, re.DOTALL)
    assert "SEC_DESC_DACL_PROTECTED" in output
