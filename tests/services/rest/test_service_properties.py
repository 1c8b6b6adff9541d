import pytest

from tests.services.harness import Harness

TARGET = "/?restype=service&comp=properties"
SOFT_DELETE = "<DeleteRetentionPolicy><Enabled>{}</Enabled>{}</DeleteRetentionPolicy>"
WEBSITE = "<StaticWebsite><Enabled>{}</Enabled>{}</StaticWebsite>"


def document(inside: str) -> bytes:
    return f"<StorageServiceProperties>{inside}</StorageServiceProperties>".encode()


@pytest.mark.parametrize(
    ("inside", "node"),
    [
        (WEBSITE.format("true", "<IndexDocument>index.html</IndexDocument>"), "StaticWebsite"),
        (WEBSITE.format("true", ""), "StaticWebsite"),
    ],
)  # fmt: skip
async def test_what_is_not_there_yet_cannot_be_turned_on(blobs: Harness, inside: str, node: str) -> None:
    before = (await blobs("GET", TARGET)).body
    refused = await blobs("PUT", TARGET, body=document("<Cors />" + inside))
    assert (refused.status, refused.code) == (501, "NotImplemented")
    assert refused.xml.findtext("XmlNodeName") == node
    assert (await blobs("GET", TARGET)).body == before


@pytest.mark.parametrize(
    "inside",
    [
        SOFT_DELETE.format("false", ""),
        SOFT_DELETE.format("false", "<AllowPermanentDelete>false</AllowPermanentDelete>"),
        WEBSITE.format("false", ""),
    ],
)
async def test_what_is_not_there_yet_can_be_turned_off(blobs: Harness, inside: str) -> None:
    before = (await blobs("GET", TARGET)).body
    assert (await blobs("PUT", TARGET, body=document(inside))).status == 202
    assert (await blobs("GET", TARGET)).body == before


@pytest.mark.parametrize(
    "element",
    [
        "ContainerDeleteRetentionPolicy",
        "IsVersioningEnabled",
        "ChangeFeed",
        "LastAccessTimeTrackingPolicy",
        "ShareDeleteRetentionPolicy",
    ],
)
async def test_properties_of_the_management_api_are_unknown(blobs: Harness, element: str) -> None:
    body = document(f"<{element}><Enabled>true</Enabled><Days>7</Days></{element}>")
    refused = await blobs("PUT", TARGET, body=body)
    assert (refused.status, refused.code) == (400, "UnsupportedXmlNode")


async def test_a_document_of_any_length_is_not_read(blobs: Harness) -> None:
    refused = await blobs("PUT", TARGET, body=b" " * (64 * 1024 + 1))
    assert (refused.status, refused.code) == (413, "RequestBodyTooLarge")
