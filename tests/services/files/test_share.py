"""Shares over REST: made, described, changed, leased, snapshotted, listed, deleted."""

from collections.abc import Mapping
from urllib.parse import quote
from xml.etree.ElementTree import Element

import pytest

from kyanite.model.maintenance.tasks import TASKS, step_each, step_of
from kyanite.values import later
from tests.services.harness import Harness

ID = "11111111-1111-1111-1111-111111111111"
OTHER_ID = "22222222-2222-2222-2222-222222222222"
ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": ID}
FILE = {"x-ms-type": "file"}


async def make(files: Harness, headers: dict[str, str] | None = None) -> None:
    assert (await files("PUT", "/box?restype=share", headers)).status == 201


async def snapshot(files: Harness) -> str:
    answer = await files("PUT", "/box?restype=share&comp=snapshot")
    assert answer.status == 201
    return quote(answer.headers["x-ms-snapshot"])


async def test_a_share_is_made_once(files: Harness) -> None:
    await make(files, {"x-ms-meta-Color": "blue"})
    again = await files("PUT", "/box?restype=share")
    assert (again.status, again.code) == (409, "ShareAlreadyExists")
    found = await files("GET", "/box?restype=share")
    assert found.headers["x-ms-meta-color"] == "blue"
    assert found.headers["x-ms-share-quota"] == "5120"
    assert found.headers["x-ms-access-tier"] == "TransactionOptimized"
    assert found.headers["x-ms-enabled-protocols"] == "SMB"
    assert (found.headers["x-ms-lease-status"], found.headers["x-ms-lease-state"]) == (
        "unlocked",
        "available",
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [("UP", "OutOfRangeInput"), ("Upper", "InvalidResourceName"), ("a--b", "InvalidResourceName")],
)
async def test_names_that_no_share_can_have(files: Harness, name: str, code: str) -> None:
    answer = await files("PUT", f"/{name}?restype=share")
    assert (answer.status, answer.code) == (400, code)


@pytest.mark.parametrize(
    "header",
    [
        {"x-ms-share-quota": "0"},
        {"x-ms-share-quota": "-1"},
        {"x-ms-share-quota": "many"},
        {"x-ms-share-quota": "262145"},
        {"x-ms-access-tier": "Lukewarm"},
        {"x-ms-enabled-protocols": "AFP"},
        {"x-ms-root-squash": "RootSquash"},
    ],
)
async def test_settings_that_cannot_be_are_refused(files: Harness, header: dict[str, str]) -> None:
    answer = await files("PUT", "/box?restype=share", header)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert (await files("GET", "/box?restype=share")).code == "ShareNotFound"


async def test_settings_are_kept_and_changed(files: Harness) -> None:
    await make(
        files, {"x-ms-share-quota": "7", "x-ms-enabled-protocols": "NFS", "x-ms-root-squash": "allsquash"}
    )
    before = await files("GET", "/box?restype=share")
    assert before.headers["x-ms-root-squash"] == "AllSquash"
    changed = await files("PUT", "/box?restype=share&comp=properties", {"x-ms-access-tier": "hot"})
    assert changed.status == 200
    found = await files("GET", "/box?restype=share")
    assert (found.headers["x-ms-share-quota"], found.headers["x-ms-access-tier"]) == ("7", "Hot")
    assert found.headers["etag"] == changed.headers["etag"] != before.headers["etag"]
    assert "x-ms-access-tier-change-time" in found.headers


async def test_only_shares_that_speak_nfs_squash_a_root(files: Harness) -> None:
    await make(files)
    squash = {"x-ms-root-squash": "AllSquash"}
    answer = await files("PUT", "/box?restype=share&comp=properties", squash)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    squash = {"x-ms-root-squash": "NoRootSquash"}
    assert (await files("PUT", "/box?restype=share&comp=properties", squash)).status == 200
    assert "x-ms-root-squash" not in (await files("GET", "/box?restype=share")).headers


BURSTING = "x-ms-share-paid-bursting"
ACCESS = "x-ms-enable-snapshot-virtual-directory-access"


async def listed_share(files: Harness) -> Element:
    found = (await files("GET", "/?comp=list")).xml.find("Shares/Share/Properties")
    assert found is not None
    return found


PROVISIONING = {
    "ProvisionedIops": "provisioned-iops",
    "ProvisionedIngressMBps": "provisioned-ingress-mbps",
    "ProvisionedEgressMBps": "provisioned-egress-mbps",
    "ProvisionedBandwidthMiBps": "provisioned-bandwidth-mibps",
    "IncludedBurstIops": "included-burst-iops",
    "MaxBurstCreditsForIops": "max-burst-credits-for-iops",
}
"""The element of a list and the header that say the same."""


async def described(files: Harness, expected: dict[str, str]) -> tuple[Mapping[str, str], Element]:
    """The headers and the listed properties of the share, which both have these values."""
    found, listed = (await files("GET", "/box?restype=share")).headers, await listed_share(files)
    for element, value in expected.items():
        assert found[f"x-ms-share-{PROVISIONING[element]}"] == listed.findtext(element) == value
    return found, listed


async def test_what_a_share_is_provisioned_with_is_returned_with_what_follows(files: Harness) -> None:
    await make(files, {"x-ms-share-provisioned-iops": "600", "x-ms-share-provisioned-bandwidth-mibps": "150"})
    found, _ = await described(
        files,
        {
            "ProvisionedIops": "600",
            "ProvisionedBandwidthMiBps": "150",
            "IncludedBurstIops": "5000",
            "MaxBurstCreditsForIops": str(4400 * 3600),
        },
    )
    for what in ("quota", "provisioned-iops", "provisioned-bandwidth"):
        assert found[f"x-ms-share-next-allowed-{what}-downgrade-time"] == found["last-modified"]


async def test_the_quota_of_a_premium_share_says_how_fast_it_is(files: Harness) -> None:
    await make(files, {"x-ms-access-tier": "Premium", "x-ms-share-quota": "130"})
    speeds = {"Iops": "3130", "IngressMBps": "46", "EgressMBps": "68", "BandwidthMiBps": "114"}
    found, listed = await described(files, {f"Provisioned{name}": value for name, value in speeds.items()})
    assert listed.findtext("NextAllowedQuotaDowngradeTime") == found["last-modified"]


async def test_bursting_and_access_to_snapshots_are_kept_and_listed(files: Harness) -> None:
    sent = {
        f"{BURSTING}-enabled": "True",
        f"{BURSTING}-max-iops": "10",
        f"{BURSTING}-max-bandwidth-mibps": "20",
    }
    await make(files, sent | {"x-ms-enabled-protocols": "NFS"})
    assert (await files("GET", "/box?restype=share")).headers[ACCESS] == "true"
    changed = await files("PUT", "/box?restype=share&comp=properties", {ACCESS: "False"})
    assert changed.status == 200
    found, listed = (await files("GET", "/box?restype=share")).headers, await listed_share(files)
    assert found[ACCESS] == listed.findtext("EnableSnapshotVirtualDirectoryAccess") == "false"
    assert found[f"{BURSTING}-enabled"] == listed.findtext("PaidBurstingEnabled") == "true"
    assert found[f"{BURSTING}-max-iops"] == listed.findtext("PaidBurstingMaxIops") == "10"
    assert (
        found[f"{BURSTING}-max-bandwidth-mibps"] == listed.findtext("PaidBurstingMaxBandwidthMibps") == "20"
    )


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-ms-share-provisioned-iops": "1"}, "FileShareProvisionedIopsInvalid"),
        ({"x-ms-share-provisioned-bandwidth-mibps": "1"}, "FileShareProvisionedBandwidthInvalid"),
        ({"x-ms-share-provisioned-iops": "many"}, "InvalidHeaderValue"),
        ({f"{BURSTING}-max-iops": "-1"}, "InvalidHeaderValue"),
        ({f"{BURSTING}-enabled": "perhaps"}, "InvalidHeaderValue"),
        ({ACCESS: "perhaps"}, "InvalidHeaderValue"),
    ],
)
async def test_what_no_share_can_be_provisioned_with(
    files: Harness, headers: dict[str, str], code: str
) -> None:
    refused = await files("PUT", "/box?restype=share", headers)
    assert (refused.status, refused.code) == (400, code)
    assert (await files("GET", "/box?restype=share")).code == "ShareNotFound"


async def test_metadata_is_replaced(files: Harness) -> None:
    await make(files, {"x-ms-meta-a": "1"})
    assert (await files("PUT", "/box?restype=share&comp=metadata", {"x-ms-meta-b": "2"})).status == 200
    found = await files("GET", "/box?restype=share&comp=metadata")
    assert (found.headers.get("x-ms-meta-a"), found.headers["x-ms-meta-b"]) == (None, "2")


async def test_policies_are_kept(files: Harness) -> None:
    await make(files)
    body = (
        b"<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Permission>rl</Permission>"
        b"</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    assert (await files("PUT", "/box?restype=share&comp=acl", body=body)).status == 200
    found = await files("GET", "/box?restype=share&comp=acl")
    assert [each.findtext("Id") for each in found.xml] == ["p"]


async def test_the_lengths_of_files_are_counted_and_limited(files: Harness) -> None:
    await make(files, {"x-ms-share-quota": "1"})
    gib = 1 << 30
    for name, length in (("a", gib - 10), ("b", 10)):
        assert (await files("PUT", f"/box/{name}", FILE | {"x-ms-content-length": str(length)})).status == 201
    full = await files("PUT", "/box/c", FILE | {"x-ms-content-length": "1"})
    assert (full.status, full.code) == (409, "ShareSizeLimitReached")
    grown = await files("PUT", "/box/b?comp=properties", {"x-ms-content-length": "11"})
    assert grown.code == "ShareSizeLimitReached"
    assert (await files("GET", "/box?restype=share&comp=stats")).xml.findtext("ShareUsageBytes") == str(gib)
    await files("DELETE", "/box/a")
    await files("PUT", "/box/b?comp=properties", {"x-ms-content-length": "3"})
    assert (await files("GET", "/box?restype=share&comp=stats")).xml.findtext("ShareUsageBytes") == "3"


async def test_a_leased_share_is_deleted_with_its_lease_only(files: Harness) -> None:
    await make(files)
    assert (await files("PUT", "/box?restype=share&comp=lease", ACQUIRE)).status == 201
    assert (await files("DELETE", "/box?restype=share")).code == "LeaseIdMissing"
    wrong = await files("DELETE", "/box?restype=share", {"x-ms-lease-id": OTHER_ID})
    assert (wrong.status, wrong.code) == (412, "LeaseIdMismatchWithShareOperation")
    for query in ("", "&comp=metadata", "&comp=acl", "&comp=stats"):
        target = f"/box?restype=share{query}"
        for lease_id, status in ((ID, 200), (OTHER_ID, 412)):
            assert (await files("GET", target, {"x-ms-lease-id": lease_id})).status == status
    assert (await files("PUT", "/box?restype=share&comp=metadata", {"x-ms-meta-b": "2"})).status == 200
    assert (await files("DELETE", "/box?restype=share", {"x-ms-lease-id": ID})).status == 202
    assert (await files("GET", "/box?restype=share")).code == "ShareNotFound"


async def test_a_finite_lease_of_a_share_ends(files: Harness) -> None:
    await make(files)
    await files("PUT", "/box?restype=share&comp=lease", ACQUIRE | {"x-ms-lease-duration": "15"})
    files.clock.now = later(files.clock.now, 16)
    assert (await files("GET", "/box?restype=share")).headers["x-ms-lease-state"] == "expired"
    renewed = await files(
        "PUT", "/box?restype=share&comp=lease", {"x-ms-lease-action": "renew", "x-ms-lease-id": ID}
    )
    assert renewed.status == 200


async def test_a_share_with_snapshots_is_not_deleted_without_a_word(files: Harness) -> None:
    await make(files)
    at = await snapshot(files)
    assert (await files("DELETE", "/box?restype=share")).code == "ShareHasSnapshots"
    leased = await files("PUT", f"/box?restype=share&comp=lease&sharesnapshot={at}", ACQUIRE)
    assert leased.status == 201
    assert (await files("GET", "/box?restype=share")).headers["x-ms-lease-state"] == "available"
    include = {"x-ms-delete-snapshots": "include"}
    refused = await files("DELETE", "/box?restype=share", include)
    assert (refused.status, refused.code) == (409, "DeleteShareWhenSnapshotLeased")
    include_leased = {"x-ms-delete-snapshots": "include-leased"}
    assert (await files("DELETE", "/box?restype=share", include_leased)).status == 202
    await make(files)
    assert (await files("GET", f"/box?restype=share&sharesnapshot={at}")).code == "ShareSnapshotNotFound"


async def test_one_snapshot_can_be_deleted(files: Harness) -> None:
    await make(files)
    first, second = await snapshot(files), await snapshot(files)
    assert (await files("DELETE", f"/box?restype=share&sharesnapshot={first}")).status == 202
    gone = await files("GET", f"/box?restype=share&sharesnapshot={first}")
    assert (gone.status, gone.code) == (404, "ShareSnapshotNotFound")
    assert (await files("GET", f"/box?restype=share&sharesnapshot={second}")).status == 200


async def test_shares_are_listed_with_their_snapshots_page_by_page(files: Harness) -> None:
    for name in ("aaa", "box", "boy"):
        await files("PUT", f"/{name}?restype=share", {"x-ms-meta-n": name})
    at = await snapshot(files)
    found, marker = [], ""
    while True:
        page = await files("GET", f"/?comp=list&include=snapshots,metadata&maxresults=1&marker={marker}")
        for each in page.xml.iter("Share"):
            found.append((each.findtext("Name"), each.findtext("Snapshot"), each.findtext("Metadata/n")))
        marker = quote(page.xml.findtext("NextMarker") or "")
        if not marker:
            break
    moment = at.replace("%3A", ":")
    assert found == [("aaa", None, "aaa"), ("box", moment, "box"), ("box", None, "box"), ("boy", None, "boy")]
    plain = await files("GET", "/?comp=list&prefix=bo")
    assert [each.findtext("Name") for each in plain.xml.iter("Share")] == ["box", "boy"]
    assert plain.xml.find("Shares/Share/Metadata") is None


async def test_nothing_is_written_to_a_snapshot(files: Harness) -> None:
    await make(files)
    await files("PUT", "/box/f", FILE | {"x-ms-content-length": "5"})
    at = await snapshot(files)
    for method, target, headers in (
        ("PUT", "/box?restype=share&comp=metadata", {}),
        ("PUT", "/box?restype=share&comp=properties", {"x-ms-share-quota": "5"}),
        ("PUT", "/box/d?restype=directory", {}),
        ("PUT", "/box/f?", FILE | {"x-ms-content-length": "5"}),
        ("PUT", "/box/f?comp=metadata", {}),
        ("PUT", "/box/f?comp=lease", ACQUIRE),
        ("DELETE", "/box/f?", {}),
    ):
        answer = await files(method, f"{target}&sharesnapshot={at}", headers)
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue"), target
    assert (await files("GET", "/box/f?sharesnapshot=yesterday")).code == "InvalidQueryParameterValue"


async def test_protocol_settings_are_there_from_the_start(files: Harness) -> None:
    found = (await files("GET", "/?restype=service&comp=properties")).xml
    assert found.findtext("ProtocolSettings/SMB/Multichannel/Enabled") == "false"


async def test_protocol_settings_are_kept_beside_others(files: Harness) -> None:
    path = "/?restype=service&comp=properties"
    smb = b"<ProtocolSettings><SMB><Multichannel><Enabled>true</Enabled></Multichannel></SMB></ProtocolSettings>"
    nfs = (
        b"<ProtocolSettings><NFS><EncryptionInTransit><Required>false</Required></EncryptionInTransit>"
        b"</NFS></ProtocolSettings>"
    )
    for settings in (smb, nfs):
        body = b"<StorageServiceProperties>" + settings + b"</StorageServiceProperties>"
        assert (await files("PUT", path, body=body)).status == 202
    found = (await files("GET", path)).xml
    assert found.findtext("ProtocolSettings/SMB/Multichannel/Enabled") == "true"
    assert found.findtext("ProtocolSettings/NFS/EncryptionInTransit/Required") == "false"
    assert found.find("Logging") is None
    logging = b"<StorageServiceProperties><Logging /></StorageServiceProperties>"
    assert (await files("PUT", path, body=logging)).code == "UnsupportedXmlNode"


async def test_the_key_of_an_account_gets_no_user_delegation_key(files: Harness) -> None:
    answer = await files("POST", "/?restype=service&comp=userdelegationkey")
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


RETAIN = (
    b"<StorageServiceProperties><ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>2</Days>"
    b"</ShareDeleteRetentionPolicy></StorageServiceProperties>"
)


async def test_a_deleted_share_can_be_restored_for_a_while(files: Harness) -> None:
    await files("PUT", "/?restype=service&comp=properties", body=RETAIN)
    await make(files, {"x-ms-meta-a": "1"})
    await files("PUT", "/box/f", FILE | {"x-ms-content-length": "5"}, b"hello")
    await files("DELETE", "/box?restype=share")
    assert (await files("GET", "/box/f")).code == "ShareNotFound"
    assert list((await files("GET", "/?comp=list")).xml.iter("Share")) == []
    listed = (await files("GET", "/?comp=list&include=deleted")).xml.find("Shares/Share")
    assert listed is not None
    assert (listed.findtext("Name"), listed.findtext("Deleted")) == ("box", "true")
    assert listed.findtext("Properties/RemainingRetentionDays") == "2"
    name = {"x-ms-deleted-share-name": "box", "x-ms-deleted-share-version": listed.findtext("Version") or ""}
    target = "/box?restype=share&comp=undelete"
    await make(files)
    assert (await files("PUT", target, name)).code == "ShareAlreadyExists"
    await files("DELETE", "/box?restype=share")
    pages = []
    marker = ""
    for _ in range(2):
        page = await files("GET", f"/?comp=list&include=deleted&maxresults=1&marker={marker}")
        pages += [each.findtext("Version") for each in page.xml.iter("Share")]
        marker = quote(page.xml.findtext("NextMarker") or "")
    assert (pages[0], len(set(pages)), marker) == (listed.findtext("Version"), 2, "")
    assert (await files("PUT", target, name)).status == 201
    assert (await files("GET", "/box/f")).body == b"hello"
    assert (await files("GET", "/box?restype=share")).headers["x-ms-meta-a"] == "1"
    assert (await files("PUT", target, name)).code == "ShareNotFound"


async def test_after_its_time_a_deleted_share_is_gone(files: Harness) -> None:
    await files("PUT", "/?restype=service&comp=properties", body=RETAIN)
    await make(files)
    await files("DELETE", "/box?restype=share")
    version = (await files("GET", "/?comp=list&include=deleted")).xml.findtext("Shares/Share/Version") or ""
    files.clock.now = later(files.clock.now, 2 * 86_400 + 1)
    assert list((await files("GET", "/?comp=list&include=deleted")).xml.iter("Share")) == []
    name = {"x-ms-deleted-share-name": "box", "x-ms-deleted-share-version": version}
    assert (await files("PUT", "/box?restype=share&comp=undelete", name)).code == "ShareNotFound"
    maintenance = [step_of(files.engine, task) for task in TASKS]
    for _ in range(20):
        await step_each(maintenance)
    left = await files.engine.read(lambda snap: [key for key, _ in snap.scan(b"A", b"Z")])
    assert left == []


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "MissingRequiredHeader"),
        ({"x-ms-deleted-share-name": "box"}, "MissingRequiredHeader"),
        ({"x-ms-deleted-share-name": "other", "x-ms-deleted-share-version": "0" * 16}, "InvalidHeaderValue"),
        ({"x-ms-deleted-share-name": "box", "x-ms-deleted-share-version": "F" * 16}, "InvalidHeaderValue"),
        ({"x-ms-deleted-share-name": "box", "x-ms-deleted-share-version": "0" * 16}, "ShareNotFound"),
    ],
)
async def test_restores_that_cannot_be(files: Harness, headers: dict[str, str], code: str) -> None:
    assert (await files("PUT", "/box?restype=share&comp=undelete", headers)).code == code
